package policy

import (
	"time"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"

	"github.com/ayegate/ayegate/internal/call"
	"github.com/ayegate/ayegate/internal/strictjson"
)

// evaluation is the state of judging one call. What costs something is made when
// the first rule asks for it, and once.
type evaluation struct {
	call  call.Call
	facts *Facts
	raw   []byte
	vars  *activation
}

// args returns the arguments' canonical bytes.
func (e *evaluation) args() []byte {
	if e.raw == nil {
		e.raw = e.call.Args()
	}
	return e.raw
}

// has reports whether the call carries every argument that x reads.
func (e *evaluation) has(x *expr) bool {
	for _, p := range x.reads {
		if _, ok := strictjson.Get(e.args(), p...); !ok {
			return false
		}
	}
	return true
}

// value evaluates an expression.
func (e *evaluation) value(x *expr) (ref.Val, reason) {
	if e.vars == nil {
		e.vars = newActivation(e)
	}
	e.vars.whole = x.whole
	if x.whole {
		if why := e.vars.args.decode(); why != "" {
			return nil, why
		}
	}
	v, _, err := x.prog.Eval(e.vars)
	if err != nil {
		return nil, reasonOf(err)
	}
	return v, ""
}

// holds evaluates a condition; no condition holds always.
func (e *evaluation) holds(x *expr) (bool, reason) {
	if x == nil {
		return true, ""
	}
	v, why := e.value(x)
	if why != "" {
		return false, why
	}
	b, ok := v.(types.Bool)
	if !ok {
		return false, "it is neither true nor false"
	}
	return bool(b), ""
}

// activation is what an expression can see.
type activation struct {
	args                            arguments
	whole                           bool // the expression reads args as a whole
	call                            call.Call
	agent, session, workspace, root string
	now                             time.Time
}

func newActivation(e *evaluation) *activation {
	return &activation{
		args: arguments{raw: e.args()}, call: e.call, agent: e.facts.Agent, session: e.facts.Session, workspace: e.facts.Workspace,
		root: e.facts.WorkspaceRoot, now: e.facts.Now,
	}
}

// ResolveName implements the engine's activation.
func (v *activation) ResolveName(name string) (any, bool) {
	switch name {
	case "args":
		if v.whole {
			return v.args.all, true
		}
		return &v.args, true
	case "tool":
		return v.call.Tool(), true
	case "server":
		return v.call.Server(), true
	case "agent":
		return v.agent, true
	case "session":
		return v.session, true
	case "workspace":
		return v.workspace, true
	case "now":
		return types.Timestamp{Time: v.now.UTC()}, true
	case rootVariable:
		return v.root, true
	}
	return nil, false
}

// Parent implements the engine's activation.
func (v *activation) Parent() interpreter.Activation { return nil }

// adapter gives the engine the values of a JSON tree.
type adapter struct{}

// NativeToValue implements the engine's adapter.
func (a adapter) NativeToValue(v any) ref.Val {
	switch v := v.(type) {
	case *arguments:
		return types.NewStringInterfaceMap(a, nil) // only asked for a name that is not there
	case strictjson.Number:
		return number(v)
	case map[string]any:
		return types.NewStringInterfaceMap(a, v)
	case []any:
		return types.NewDynamicList(a, v)
	}
	return types.DefaultTypeAdapter.NativeToValue(v)
}

// The domain functions as the engine sees them.

func (c *compiler) inside(args ...ref.Val) ref.Val {
	in, why := c.scopes[string(args[1].(types.String))].holds(string(args[0].(types.String)), string(args[2].(types.String)))
	return answer(types.Bool(in), why)
}

func (c *compiler) hostIn(args ...ref.Val) ref.Val {
	in, why := c.scopes[string(args[1].(types.String))].hosts(string(args[0].(types.String)))
	return answer(types.Bool(in), why)
}

func hostValue(u ref.Val) ref.Val {
	host, why := hostOf(string(u.(types.String)))
	return answer(types.String(host), why)
}

func (c *compiler) argv(command ref.Val) ref.Val {
	words, why := c.shells.argv(string(command.(types.String)))
	return answer(types.NewStringList(types.DefaultTypeAdapter, words), why)
}

func sqlVerbsValue(query ref.Val) ref.Val {
	return types.NewStringList(types.DefaultTypeAdapter, sqlVerbsOf(string(query.(types.String))))
}

func answer(v ref.Val, why reason) ref.Val {
	if why != "" {
		return types.WrapErr(ownError(why))
	}
	return v
}
