package web

import (
	"bytes"
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ayegate/ayegate/api"
)

var update = flag.Bool("update", false, "write openapi.json")

// TestOpenAPIIsCurrent makes the description anew and compares.
func TestOpenAPIIsCurrent(t *testing.T) {
	b := describe(t)
	if *update {
		if err := os.WriteFile("openapi.json", b, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(b, openapi) {
		t.Fatal("openapi.json is not what routes, types and comments make: run go test ./internal/web -run OpenAPI -update")
	}
}

// TestOpenAPIHolds checks the document: every reference resolves, every route is
// in it, operations have distinct ids, and every field is documented.
func TestOpenAPIHolds(t *testing.T) {
	var doc map[string]any
	if err := json.Unmarshal(openapi, &doc); err != nil {
		t.Fatal(err)
	}
	if doc["openapi"] != "3.1.0" {
		t.Fatalf("openapi is %v", doc["openapi"])
	}
	var visit func(path string, v any)
	visit = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			if ref, ok := v["$ref"].(string); ok && !resolves(doc, ref) {
				t.Errorf("%s: %s leads nowhere", path, ref)
			}
			for k, e := range v {
				visit(path+"/"+k, e)
			}
		case []any:
			for _, e := range v {
				visit(path+"[]", e)
			}
		}
	}
	visit("#", doc)
	paths := doc["paths"].(map[string]any)
	ids := map[string]bool{}
	for _, rt := range table() {
		op, ok := paths[strings.Replace(rt.pattern, "{$}", "", 1)].(map[string]any)[strings.ToLower(rt.method)].(map[string]any)
		if !ok {
			t.Errorf("%s %s is not described", rt.method, rt.pattern)
			continue
		}
		id := op["operationId"].(string)
		if ids[id] || id == "" || op["summary"] == "" {
			t.Errorf("%s %s: operation %q is not unique or has no summary", rt.method, rt.pattern, id)
		}
		ids[id] = true
	}
	for name, s := range doc["components"].(map[string]any)["schemas"].(map[string]any) {
		for field, p := range s.(map[string]any)["properties"].(map[string]any) {
			if p.(map[string]any)["description"] == nil {
				t.Errorf("%s.%s is not documented: comment the field in package api", name, field)
			}
		}
	}
}

func resolves(doc any, ref string) bool {
	for _, step := range strings.Split(strings.TrimPrefix(ref, "#/"), "/") {
		m, ok := doc.(map[string]any)
		if !ok {
			return false
		}
		if doc, ok = m[step]; !ok {
			return false
		}
	}
	return true
}

type object = map[string]any

func describe(t *testing.T) []byte {
	d := describer{docs: comments(t), schemas: object{}}
	paths := object{}
	for _, rt := range table() {
		at := strings.Replace(rt.pattern, "{$}", "", 1)
		if paths[at] == nil {
			paths[at] = object{}
		}
		paths[at].(object)[strings.ToLower(rt.method)] = d.operation(rt)
	}
	d.schema(reflect.TypeFor[api.Problem]())
	doc := object{
		"openapi": "3.1.0",
		"info": object{
			"title": "ayegate", "version": "1",
			"description": "The approval gateway for AI agents. Agents ask, people decide; the two credentials never mix.",
		},
		"paths": paths,
		"components": object{
			"schemas": d.schemas,
			"securitySchemes": object{
				"agentKey":   object{"type": "http", "scheme": "bearer", "description": "aye_agent_…: may ask, never decide."},
				"humanToken": object{"type": "http", "scheme": "bearer", "description": "aye_human_…: may decide, never ask."},
				"session":    object{"type": "apiKey", "in": "cookie", "name": "__Host-aye_session", "description": "A browser session. The name without TLS is aye_session_<port>."},
			},
		},
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "\t")
	if err := e.Encode(doc); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

type describer struct {
	docs    map[string]string // by "Type" and "Type.Field"
	schemas object
}

var variable = regexp.MustCompile(`\{(\w+)\}`)

func (d *describer) operation(rt route) object {
	op := object{"operationId": rt.name, "summary": rt.doc, "tags": []string{rt.plane.String()}}
	var params []any
	for _, m := range variable.FindAllStringSubmatch(rt.pattern, -1) {
		params = append(params, object{"name": m[1], "in": "path", "required": true, "schema": object{"type": "string"}})
	}
	for _, q := range rt.query {
		params = append(params, object{"name": q.name, "in": "query", "description": q.doc, "schema": object{"type": "string"}})
	}
	if params != nil {
		op["parameters"] = params
	}
	if rt.in != nil {
		op["requestBody"] = object{"required": true, "content": object{"application/json": object{"schema": d.schema(rt.in)}}}
	}
	media := rt.media
	if media == "" {
		media = "application/json"
	}
	schema := object{"type": "string"}
	if rt.out != nil {
		schema = d.schema(rt.out)
	} else if media == "application/json" {
		schema = object{"type": "object"}
	}
	ok := object{"description": "Done.", "content": object{media: object{"schema": schema}}}
	answers := object{"200": ok}
	switch rt.name {
	case "submitCall", "awaitCall":
		answers["202"] = object{"description": "It waits.", "content": ok["content"]}
	case "addKey":
		answers = object{"201": ok}
	}
	answers["default"] = object{
		"description": "A problem; its code says which.",
		"content":     object{"application/problem+json": object{"schema": d.schema(reflect.TypeFor[api.Problem]())}},
	}
	op["responses"] = answers
	switch rt.plane {
	case agents:
		op["security"] = []any{object{"agentKey": []any{}}}
	case humans:
		op["security"] = []any{object{"humanToken": []any{}}, object{"session": []any{}}}
	case pages:
		op["security"] = []any{object{"session": []any{}}}
	default:
		op["security"] = []any{}
	}
	return op
}

// schema describes a type, structs by reference.
func (d *describer) schema(t reflect.Type) object {
	switch t {
	case reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case reflect.TypeFor[json.RawMessage]():
		return object{} // any JSON
	case reflect.TypeFor[api.Duration]():
		return object{"type": "string", "examples": []string{"30s", "5m"}}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return d.schema(t.Elem())
	case reflect.String:
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int, reflect.Int64:
		return object{"type": "integer"}
	case reflect.Slice:
		return object{"type": "array", "items": d.schema(t.Elem())}
	case reflect.Struct:
	default:
		panic("no schema for " + t.String())
	}
	ref := object{"$ref": "#/components/schemas/" + t.Name()}
	if d.schemas[t.Name()] != nil {
		return ref
	}
	s := object{"type": "object"}
	d.schemas[t.Name()] = s
	if doc := d.docs[t.Name()]; doc != "" {
		s["description"] = doc
	}
	properties, required := object{}, []string{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		p := d.schema(f.Type)
		p["description"] = d.docs[t.Name()+"."+f.Name]
		if p["description"] == "" {
			delete(p, "description")
		}
		properties[name] = p
		asked := strings.HasSuffix(t.Name(), "Request") && t.Name() != "Request" && t.Name() != "EventRequest" || t.Name() == "Scope" || t.Name() == "Confirm"
		if !strings.Contains(options, "omit") {
			required = append(required, name)
		}
		if asked {
			s["additionalProperties"] = false
		}
	}
	s["properties"] = properties
	if len(required) > 0 {
		slices.Sort(required)
		s["required"] = required
	}
	return ref
}

// comments reads the comments of the types of package api: they are the manual.
func comments(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	files, err := filepath.Glob("../../api/*.go")
	if err != nil || len(files) == 0 {
		t.Fatal("the sources of package api are not there", err)
	}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.TYPE {
				continue
			}
			for _, s := range g.Specs {
				ts := s.(*ast.TypeSpec)
				out[ts.Name.Name] = plainText(g.Doc)
				st, ok := ts.Type.(*ast.StructType)
				if !ok {
					continue
				}
				for _, f := range st.Fields.List {
					for _, n := range f.Names {
						out[ts.Name.Name+"."+n.Name] = plainText(f.Doc)
					}
				}
			}
		}
	}
	return out
}

func plainText(c *ast.CommentGroup) string {
	if c == nil {
		return ""
	}
	return strings.Join(strings.Fields(strings.NewReplacer("[", "", "]", "").Replace(c.Text())), " ")
}

// The manual names every route, and no route that is not there.
func TestManualNamesEveryRoute(t *testing.T) {
	b, err := os.ReadFile("../../docs/http.md")
	if err != nil {
		t.Fatal(err)
	}
	served := map[string]bool{}
	for _, rt := range table() {
		line := rt.method + " " + strings.Replace(rt.pattern, "{$}", "", 1)
		served[line] = true
		if !bytes.Contains(b, []byte("`"+line+"`")) {
			t.Errorf("%s is not in docs/http.md", line)
		}
	}
	for _, m := range regexp.MustCompile("`((?:GET|POST|DELETE) /[^`?]*)`").FindAllSubmatch(b, -1) {
		if !served[string(m[1])] {
			t.Errorf("docs/http.md tells of %s, which is not served", m[1])
		}
	}
}
