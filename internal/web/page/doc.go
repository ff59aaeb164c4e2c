// Package page draws what people see in a browser.
//
// Pages are rendered on the server, complete without any script, and carry none.
// What an agent wrote is text in a framed region and nothing else: no markdown,
// no links, no images, and no character that a person could miss. The call is
// drawn from the canonical bytes that will run ([Exact]), whole, and so that the
// bytes can be read back from the page: that is tested for hostile input, and it
// is why each mark below stands for one thing only.
//
//   - a chip "U+202E" is that character, "U+202E ×3" three of it;
//   - "·" is a space among several or at an edge, a chip "space ×40" is forty;
//   - "⇥" is a tab, "⏎" a line break, each with "×n" where there are many.
//
// The marks are elements of their own: text that merely looks like one is
// ordinary text in the page and drawn as such.
//
// The package owns templates, styles and words. It knows no HTTP and asks
// nobody: what a page shows comes in as one value.
package page
