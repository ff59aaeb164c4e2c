package mcp

import (
	"strings"
	"testing"
)

func TestListAll(t *testing.T) {
	for _, how := range []string{"legacy", "modern"} {
		t.Run(how, func(t *testing.T) {
			items, err := ListAll(t.Context(), dial(t, childTarget(t, how)), "tools/list", "tools")
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, item := range items {
				got = append(got, string(item))
			}
			if strings.Join(got, "\n") != strings.Join(peerTools, "\n") {
				t.Errorf("got  %s\nwant %s", got, peerTools)
			}
		})
	}
}

// MCP-14: a list without end or measure is refused, and not cut.
func TestListAllRefuses(t *testing.T) {
	for how, want := range map[string]string{
		"circle": "circle",
		"many":   "more than 5000 elements",
	} {
		_, err := ListAll(t.Context(), dial(t, childTarget(t, how)), "tools/list", "tools")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", how, err)
		}
	}
	u := dial(t, childTarget(t, "legacy"))
	if _, err := ListAll(t.Context(), u, "tools/call", "tools"); err == nil {
		t.Error("a result without the list was accepted")
	}
	_ = u.Close()
	if _, err := ListAll(t.Context(), u, "tools/list", "tools"); err == nil {
		t.Error("a list of a closed connection")
	}
	t.Run("large items", func(t *testing.T) {
		l := listing{member: "tools", seen: map[string]bool{}}
		large := []byte(`"` + strings.Repeat("a", MaxItemBytes) + `"`)
		if _, err := l.page(Message{Result: append(append([]byte(`{"tools":[`), large...), `]}`...)}); err == nil {
			t.Error("accepted")
		}
		l = listing{member: "tools", seen: map[string]bool{}}
		part := append(append([]byte(`{"tools":[`), large[:MaxItemBytes-1]...), `"]}`...)
		var err error
		for range 20 {
			if _, err = l.page(Message{Result: part}); err != nil {
				break
			}
		}
		if err == nil {
			t.Error("a list of 20 MiB was accepted")
		}
	})
}
