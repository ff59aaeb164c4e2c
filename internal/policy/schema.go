package policy

import (
	"fmt"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"

	"github.com/ayegate/ayegate/internal/strictjson"
)

// CheckSchema compares the policy with a tool's input schema (JSON Schema, any
// draft): for every guard, rule and limit that concerns the tool, "server.tool",
// it reports arguments that the schema does not have and expressions that do not
// fit the types. Without this check such a mistake only shows as a call that is
// asked or denied. What the schema leaves open is not reported.
func (p *Policy) CheckSchema(tool string, inputSchema []byte) []Fault {
	tree, err := strictjson.Tree(inputSchema, strictjson.Limits{})
	schema, ok := tree.(map[string]any)
	if err != nil || !ok {
		return []Fault{{File: p.name, Text: fmt.Sprintf("the input schema of %s cannot be read: it is no JSON object", tool)}}
	}
	check := schemaCheck{tool: tool, schema: schema, objects: objects{types.NewEmptyRegistry(), map[string]map[string]*types.Type{}}}
	root := check.objects.declare(rootType, schema)
	if root.Kind() == types.StructKind {
		check.env, _ = cel.NewEnv(append(newCompiler(p.scopes).options(), cel.CustomTypeProvider(check.objects), cel.Variable("args", root))...)
	}
	for _, entry := range p.index.find([]byte(tool), nil) {
		check.entry(p, int(entry))
	}
	return check.faults.InOrder()
}

type schemaCheck struct {
	tool    string
	schema  map[string]any
	objects objects
	env     *cel.Env // nil: the schema says nothing about the arguments
	faults  Faults
}

func (s *schemaCheck) entry(p *Policy, at int) {
	if at -= len(p.guards); at < 0 {
		s.clause(&p.guards[at+len(p.guards)])
		return
	}
	if at -= len(p.rules); at < 0 {
		s.clause(&p.rules[at+len(p.rules)])
		return
	}
	l := &p.limits[at]
	s.expr(l.when)
	if l.patterns != nil { // else it only concerns calls that have the arguments
		s.expr(l.sum)
	}
}

func (s *schemaCheck) clause(c *clause) {
	s.expr(c.when)
	for _, name := range c.only {
		s.path(c.at, argPath{name})
	}
	for _, t := range c.effects {
		for _, segment := range t.segments {
			s.path(t.at, segment.path)
		}
	}
	for _, salient := range c.demand.salient {
		s.path(salient.at, salient.path)
	}
}

func (s *schemaCheck) expr(x *expr) {
	if x == nil {
		return
	}
	for _, path := range x.mentions {
		s.path(x.at, path)
	}
	if s.env == nil || x.whole || x.indexes {
		return
	}
	_, issues := s.env.Compile(x.src)
	for _, text := range explainIssues(issues) {
		if !strings.Contains(text, "undefined field") { // reported by name
			s.report(x.at, "does not fit %s: %s", s.tool, text)
		}
	}
}

func (s *schemaCheck) report(at Fault, format string, args ...any) {
	at.Text = fmt.Sprintf(format, args...)
	s.faults = append(s.faults, at)
}

// path follows an argument's path through the schema as far as that is closed.
func (s *schemaCheck) path(at Fault, path argPath) {
	schema := s.schema
	for i, step := range path {
		properties, closed := closedProperties(schema)
		if !closed {
			return
		}
		next, ok := properties[step]
		if !ok {
			s.report(at, "%s has no argument %q%s", s.tool, path[:i+1], meant(step, names(properties)))
			return
		}
		if schema, ok = next.(map[string]any); !ok {
			return
		}
	}
}

// closedProperties returns the members that an object's schema knows, if a name
// that is not among them is most likely a mistake. A schema that leaves other
// members open only by default counts as closed.
func closedProperties(schema map[string]any) (map[string]any, bool) {
	for _, keyword := range []string{"$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "patternProperties", "dependentSchemas"} {
		if _, ok := schema[keyword]; ok {
			return nil, false
		}
	}
	switch more := schema["additionalProperties"].(type) {
	case bool:
		if more {
			return nil, false
		}
	case map[string]any:
		return nil, false
	}
	properties, ok := schema["properties"].(map[string]any)
	return properties, ok && (schema["type"] == "object" || schema["type"] == nil)
}

// objects are the types of a schema's objects, by their path.
type objects struct {
	*types.Registry
	fields map[string]map[string]*types.Type
}

// rootType names the type of args. The "@" keeps the names of types apart from
// what an expression can say.
const rootType = "@args"

// declare returns the type that a schema describes; dyn where it leaves it open.
// A number is dyn, too: it may come as an int or as a double.
func (o objects) declare(name string, schema map[string]any) *types.Type {
	if properties, closed := closedProperties(schema); closed {
		fields := map[string]*types.Type{}
		o.fields[name] = fields
		for field, sub := range properties {
			fields[field] = types.DynType
			if sub, ok := sub.(map[string]any); ok {
				fields[field] = o.declare(name+"."+field, sub)
			}
		}
		return types.NewObjectType(name)
	}
	if name == rootType {
		return types.DynType
	}
	switch schema["type"] {
	case "string":
		return types.StringType
	case "integer":
		return types.IntType
	case "boolean":
		return types.BoolType
	case "array":
		if items, ok := schema["items"].(map[string]any); ok {
			return types.NewListType(o.declare(name+".@items", items))
		}
		return types.NewListType(types.DynType)
	}
	return types.DynType
}

// FindStructType implements the engine's type provider.
func (o objects) FindStructType(name string) (*types.Type, bool) {
	if _, ok := o.fields[name]; ok {
		return types.NewTypeTypeWithParam(types.NewObjectType(name)), true
	}
	return o.Registry.FindStructType(name)
}

// FindStructFieldType implements the engine's type provider.
func (o objects) FindStructFieldType(name, field string) (*types.FieldType, bool) {
	t, ok := o.fields[name][field]
	return &types.FieldType{Type: t}, ok
}
