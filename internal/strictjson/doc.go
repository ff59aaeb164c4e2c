// Package strictjson is the only reader of JSON that comes from outside.
//
// Two programs that read the same bytes must come to the same meaning, or an approval given for one meaning can be spent on
// another. So this package accepts less than RFC 8259 does, and says of everything it accepts exactly one thing:
//
//   - a member name occurs once in its object, compared after escapes are resolved;
//   - text is valid UTF-8, escapes name Unicode characters (no lone surrogates), member names hold no NUL;
//   - the document is one value and nothing else: no byte order mark, no trailing data;
//   - size, nesting and the number of values are bounded ([Limits]), and time is linear in size, up to a logarithm for
//     objects whose members have to be sorted;
//   - names are compared byte for byte: no case folding, no Unicode normalisation;
//   - numbers are decimal values, not doubles.
//
// # Canonical form
//
// [Canonical] writes RFC 8785 (JCS): no white space, members sorted by UTF-16 code units, the shortest escapes. Numbers follow one
// rule that extends RFC 8785, which would round 9007199254740993 to 9007199254740992 and so give two different calls one hash:
//
//	A number is written in the layout of ECMAScript's Number::toString, applied to its exact decimal digits
//	without leading and trailing zeros, instead of to the shortest digits of the nearest double.
//
// Whenever the shortest digits denote the number that was written, both rules give the same bytes, so the form is RFC 8785's for
// every number that a double's shortest form can express (1E3 is 1000, 1.10 is 1.1, 1e21 is 1e+21, -0 is 0). Any other number keeps
// its digits (9007199254740993, 333333333.33333329, 1e-400). The form is a function of the decimal value and the value can be read
// back from it, so two numbers have the same form exactly when they are equal. A number that rounds to an infinite double is
// refused ([NumberOverflow]); so is one other than zero below 1e-9999 ([NumberUnderflow]), which no reader could tell
// from zero and which costs whoever expands it far more memory than it has bytes. An exponent's spelling never costs memory here.
//
// The canonical form of an accepted document is itself accepted under the same limits, and is its own canonical form.
//
// # Not here
//
// What a document means: schemas, JSON-RPC, policy. Nor any input or output: bytes in, bytes or an error out; there is no state between calls.
package strictjson
