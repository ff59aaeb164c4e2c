package ledger

import "testing"

// A cursor sees canonical documents only, and stays within the bytes of others.
func TestCursorOnNonsense(t *testing.T) {
	for doc, end := range map[string]int{
		"": 0, "1": 1, "1,2": 1, "true}": 4, `"a"`: 3, `"a\"b"x`: 6, `"a\\"`: 5, "{}": 2, `{"a":[1,"}"]}x`: 13,
		`"a`: -1, `"a\"`: -1, `"`: -1, "{": -1, "[1": -1, `{"a`: -1,
	} {
		if got := valueEnd([]byte(doc)); got != end {
			t.Errorf("the value of %s ends at %d, want %d", doc, got, end)
		}
	}
	c := cursor{rest: []byte(`{"a":1`)}
	if name, value, ok := c.member(); !ok || string(name) != `"a"` || string(value) != "1" {
		t.Errorf("%s: %s, %v", name, value, ok)
	}
	if _, _, ok := c.member(); ok {
		t.Error("a member behind the end")
	}
	c = cursor{rest: []byte(`{"a"1}`)}
	if _, _, ok := c.member(); ok || !c.bad || c.take(1) != nil {
		t.Error("a member without a colon")
	}
}

func FuzzCursor(f *testing.F) {
	for _, s := range []string{`{"a":"b","c":[1,{"d":"\\\""}]}`, `{"`, `{]`, `"\`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(_ *testing.T, doc []byte) {
		factsOf(doc)
		c := cursor{rest: doc}
		c.text()
		parseLeaves(doc)
	})
}
