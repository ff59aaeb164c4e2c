package policy

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// expr is a compiled expression.
type expr struct {
	at       Fault // where it stands
	src      string
	prog     cel.Program
	reads    []argPath // the arguments it reads, each as far as its path is literal
	mentions []argPath // reads, and the arguments it only asks the presence of
	whole    bool      // it also reads the arguments as a whole
	indexes  bool      // it reads some by args["name"]
}

// inspects reports whether the expression reads the argument at a path.
func (x *expr) inspects(path argPath) bool {
	return x != nil && slices.ContainsFunc(x.reads, func(p argPath) bool { return slices.Equal(p, path) })
}

// kind is what an expression is for.
type kind uint8

const (
	condition kind = iota // a bool
	amount                // a number
)

// Bounds of an expression.
const (
	maxExpression = 4096          // bytes
	maxEstimate   = 1_000_000_000 // cost that the arguments assumed at load may cause
	maxCost       = 100_000       // cost of one evaluation with loops, about 10 ms
	assumedSize   = 1000          // elements or bytes of an argument, for the estimate at load
)

// variables of expressions. Names with "@" cannot be written in an expression.
var variables = []string{"args", "tool", "server", "agent", "session", "workspace", "now"}

const rootVariable = "@root"

// compiler compiles expressions against the scopes of one policy.
type compiler struct {
	scopes map[string]*scope
	shells shellParsers
	env    *cel.Env
	err    error
}

func newCompiler(scopes map[string]*scope) *compiler {
	c := &compiler{scopes: scopes}
	c.env, c.err = cel.NewEnv(append(c.options(), cel.Variable("args", cel.MapType(cel.StringType, cel.DynType)))...)
	return c
}

// options is the language of conditions, except for the type of args.
func (c *compiler) options() []cel.EnvOption {
	str, list := cel.StringType, cel.ListType(cel.StringType)
	text := func(name string) cel.EnvOption { return cel.Variable(name, str) }
	return []cel.EnvOption{
		cel.CustomTypeAdapter(adapter{}),
		cel.EnableErrorOnBadPresenceTest(true),
		cel.ParserExpressionSizeLimit(maxExpression),
		cel.ParserRecursionLimit(64),
		cel.Macros(
			cel.GlobalMacro("inside", 2, c.scoped("@inside", "paths")),
			cel.GlobalMacro("hostIn", 2, c.scoped("@hostIn", "domains")),
			cel.GlobalMacro("matches", 2, func(eh cel.MacroExprFactory, _ ast.Expr, args []ast.Expr) (ast.Expr, *common.Error) {
				return anchored(eh, args[0], args[1])
			}),
			cel.ReceiverMacro("matches", 1, func(eh cel.MacroExprFactory, target ast.Expr, args []ast.Expr) (ast.Expr, *common.Error) {
				return anchored(eh, target, args[0])
			}),
		),
		text("tool"), text("server"), text("agent"), text("session"), text("workspace"), text(rootVariable),
		cel.Variable("now", cel.TimestampType),
		cel.Function("@inside", cel.Overload("inside", []*cel.Type{str, str, str}, cel.BoolType, cel.FunctionBinding(c.inside))),
		cel.Function("@hostIn", cel.Overload("hostIn", []*cel.Type{str, str, str}, cel.BoolType, cel.FunctionBinding(c.hostIn))),
		cel.Function("host", cel.Overload("host", []*cel.Type{str}, str, cel.UnaryBinding(hostValue))),
		cel.Function("argv", cel.Overload("argv", []*cel.Type{str}, list, cel.UnaryBinding(c.argv))),
		cel.Function("sqlVerbs", cel.Overload("sqlVerbs", []*cel.Type{str}, list, cel.UnaryBinding(sqlVerbsValue))),
	}
}

// scoped rewrites inside(x, "name") to @inside(x, "name", @root), after checking
// that the policy has a scope of this name and kind.
func (c *compiler) scoped(function, want string) cel.MacroFactory {
	return func(eh cel.MacroExprFactory, _ ast.Expr, args []ast.Expr) (ast.Expr, *common.Error) {
		name, ok := literal(args[1])
		if !ok {
			return nil, eh.NewError(args[1].ID(), "the scope must be written as a text, such as \"repo\"")
		}
		s := c.scopes[name]
		if s == nil {
			return nil, eh.NewError(args[1].ID(), fmt.Sprintf("no scope is named %q%s", name, meant(name, names(c.scopes))))
		}
		if (want == "paths") != (s.paths != nil) {
			return nil, eh.NewError(args[1].ID(), fmt.Sprintf("the scope %q has no %s", name, want))
		}
		return eh.NewCall(function, args[0], args[1], eh.NewIdent(rootVariable)), nil
	}
}

func literal(e ast.Expr) (string, bool) {
	if e.Kind() != ast.LiteralKind {
		return "", false
	}
	s, ok := e.AsLiteral().(types.String)
	return string(s), ok
}

// anchored rewrites a match so that the pattern must match the whole text.
func anchored(eh cel.MacroExprFactory, target, pattern ast.Expr) (ast.Expr, *common.Error) {
	p, ok := literal(pattern)
	if !ok {
		return nil, eh.NewError(pattern.ID(), "the pattern must be written as a text")
	}
	if _, err := syntax.Parse(p, syntax.Perl); err != nil {
		return nil, eh.NewError(pattern.ID(), "the pattern is no regular expression: "+err.Error())
	}
	if multiline.MatchString(p) {
		return nil, eh.NewError(pattern.ID(), "the flag (?m) is not accepted: a pattern matches the whole text")
	}
	return eh.NewMemberCall("matches", target, eh.NewLiteral(types.String(`\A(?:`+p+`)\z`))), nil
}

// multiline finds a group that sets the flag m. It may find one in a literal
// text, too, which is then refused for nothing.
var multiline = regexp.MustCompile(`\(\?[a-zA-Z]*m[a-zA-Z]*(-[a-zA-Z]+)?[:)]`)

// compile returns a program, or everything that is wrong with the expression.
func (c *compiler) compile(src string, want kind) (*expr, []string) {
	if c.err != nil {
		return nil, []string{c.err.Error()}
	}
	checked, issues := c.env.Compile(src)
	if issues.Err() != nil {
		return nil, explainIssues(issues)
	}
	if err := wants(checked.OutputType(), want); err != "" {
		return nil, []string{err}
	}
	x := &expr{src: src}
	loops, faults := x.survey(checked.NativeRep())
	if len(faults) > 0 {
		return nil, faults
	}
	if estimate, err := c.env.EstimateCost(checked, sizes{}); err != nil || estimate.Max > maxEstimate {
		return nil, []string{"the expression may cost too much: too many loops within loops"}
	}
	options := []cel.ProgramOption{cel.EvalOptions(cel.OptOptimize)}
	if loops {
		// Without a loop the cost is bounded by the sizes of the expression and of
		// the call; counting it would cost more than it saves.
		options = append(options, cel.CostTracking(callCost{}), cel.CostLimit(maxCost))
	}
	prog, err := c.env.Program(checked, options...)
	if err != nil {
		return nil, []string{err.Error()}
	}
	x.prog = prog
	return x, nil
}

func explainIssues(issues *cel.Issues) []string {
	var out []string
	for _, e := range issues.Errors() {
		text := plainer.Replace(e.Message)
		out = append(out, fmt.Sprintf("at %d:%d of the expression: %s", e.Location.Line(), e.Location.Column()+1, text))
	}
	return out
}

// plainer puts the engine's messages into the words of policies.
var plainer = strings.NewReplacer("undeclared reference to", "unknown name", " (in container '')", "", "'@inside'", "'inside'", "'@hostIn'", "'hostIn'")

func wants(t *cel.Type, want kind) string {
	switch {
	case t.IsExactType(cel.DynType):
	case want == condition && !t.IsExactType(cel.BoolType):
		return fmt.Sprintf("the condition must be true or false, not %s", t)
	case want == amount && !t.IsExactType(cel.IntType) && !t.IsExactType(cel.DoubleType):
		return fmt.Sprintf("the amount must be a number, not %s", t)
	}
	return ""
}

// survey notes which arguments the expression reads and refuses what would make
// that, or the evaluation, depend on anything outside the call.
func (x *expr) survey(tree *ast.AST) (loops bool, faults []string) {
	var walk func(e ast.NavigableExpr)
	walk = func(e ast.NavigableExpr) {
		if e.Kind() == ast.IdentKind && e.AsIdent() == "args" {
			x.read(e)
		}
		if e.Kind() == ast.ComprehensionKind {
			loops = true
			if name := e.AsComprehension().IterVar(); slices.Contains(variables, name) {
				faults = append(faults, fmt.Sprintf("the loop variable %q hides the variable of that name", name))
			}
		}
		if e.Kind() == ast.CallKind && !fixedZone(e.AsCall()) {
			faults = append(faults, `a time zone must be written as an offset such as "+02:00"`)
		}
		for _, child := range e.Children() {
			walk(child)
		}
	}
	walk(ast.NavigateAST(tree))
	return loops, faults
}

// fixedZone reports whether a call names no time zone by its name, which would be
// looked up outside.
func fixedZone(call ast.CallExpr) bool {
	if !call.IsMemberFunction() || !strings.HasPrefix(call.FunctionName(), "get") || len(call.Args()) != 1 {
		return true
	}
	zone, ok := literal(call.Args()[0])
	return ok && offset.MatchString(zone)
}

var offset = regexp.MustCompile(`^(UTC|[+-]?\d\d:\d\d)$`)

// read follows the literal steps from args upwards and notes the path.
func (x *expr) read(e ast.NavigableExpr) {
	var path argPath
	tested := false
	for parent, ok := e.Parent(); ok && !tested; parent, ok = e.Parent() {
		if parent.Kind() == ast.SelectKind {
			path = append(path, parent.AsSelect().FieldName())
			tested = parent.AsSelect().IsTestOnly()
		} else if step, ok := literalIndex(parent, e); ok {
			path = append(path, step)
			x.indexes = true
		} else {
			break
		}
		e = parent
	}
	switch {
	case len(path) == 0:
		x.whole = true
		return
	case !tested:
		x.reads = append(x.reads, path)
	case len(path) > 1:
		x.reads = append(x.reads, path[:len(path)-1])
	}
	x.mentions = append(x.mentions, path)
}

// literalIndex returns the "name" of e["name"].
func literalIndex(parent, e ast.NavigableExpr) (string, bool) {
	if parent.Kind() != ast.CallKind || parent.AsCall().FunctionName() != operators.Index {
		return "", false
	}
	args := parent.AsCall().Args()
	if len(args) != 2 || args[0].ID() != e.ID() {
		return "", false
	}
	return literal(args[1])
}

// sizes assumes for the estimate at load that arguments are of moderate size;
// the limit at run time holds whatever they are.
type sizes struct{}

func (sizes) EstimateSize(cost.AstNode) *cost.SizeEstimate {
	return &cost.SizeEstimate{Min: 0, Max: assumedSize}
}

func (sizes) EstimateCallCost(string, string, *cost.AstNode, []cost.AstNode) *cost.CallEstimate {
	return nil
}

// callCost charges the functions that read a whole text by its length.
type callCost struct{}

func (callCost) CallCost(_, overload string, args []ref.Val, _ ref.Val) *uint64 {
	switch overload {
	case "inside", "hostIn", "host", "argv", "sqlVerbs":
		if s, ok := args[0].(types.String); ok {
			c := 10 + uint64(len(s))/10
			return &c
		}
	}
	return nil
}

// reasonOf turns an evaluation's error into words that hold no values.
func reasonOf(err error) reason {
	var own ownError
	if errors.As(err, &own) {
		return reason(own)
	}
	text := err.Error()
	switch {
	case strings.HasPrefix(text, "no such key"), strings.HasPrefix(text, "index out of"), strings.HasPrefix(text, "no such attribute"):
		return "an argument it reads is missing"
	case strings.HasPrefix(text, "no such overload"), strings.HasPrefix(text, "no matching overload"), strings.HasPrefix(text, "found no matching overload"):
		return "an argument it reads has another type"
	case strings.Contains(text, "cost limit exceeded"):
		return "it costs too much to evaluate"
	}
	return "it cannot be evaluated"
}

// ownError carries a reason through the expression engine.
type ownError reason

func (e ownError) Error() string { return string(e) }
