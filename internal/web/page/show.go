package page

import (
	"context"
	"io"
	"strings"

	"github.com/a-h/templ"
)

// Show draws a text. It writes its own HTML, so that no white space of a
// template comes between the pieces.
func Show(pieces []Piece) templ.Component {
	return templ.ComponentFunc(func(_ context.Context, w io.Writer) error {
		var b strings.Builder
		write(&b, pieces)
		_, err := io.WriteString(w, b.String())
		return err
	})
}

// Code draws a text in a framed region of its own direction, in which no text
// can look like a part of the page (DISP-05).
func Code(class string, pieces []Piece) templ.Component {
	return templ.ComponentFunc(func(_ context.Context, w io.Writer) error {
		var b strings.Builder
		b.WriteString(`<code dir="ltr" class="` + templ.EscapeString(class) + `">`)
		write(&b, pieces)
		b.WriteString(`</code>`)
		_, err := io.WriteString(w, b.String())
		return err
	})
}

func write(b *strings.Builder, pieces []Piece) {
	for _, p := range pieces {
		if p.Kind == Plain {
			b.WriteString(templ.EscapeString(p.Text))
			continue
		}
		n := 1
		if p.Kind == Breaks && p.Count <= fewBreaks {
			n, p.Count = p.Count, 1 // each is drawn where it is: the layout of a text is part of it
		}
		for range n {
			b.WriteString(`<span class="` + p.Class() + `" title="` + templ.EscapeString(p.Name()) + `">` + templ.EscapeString(p.Label()) + `</span>`)
			if p.Kind == Breaks {
				b.WriteString("<br>")
			}
		}
	}
}
