package page

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
)

// The two files that pages refer to. Their addresses carry their hash, so that a
// browser may keep them for good and a new version is a new address.
var (
	//go:embed style.css
	style []byte
	//go:embed icon.svg
	icon []byte

	StylePath = "/static/" + short(style) + ".css"
	IconPath  = "/static/" + short(icon) + ".svg"
)

func short(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8])
}

// Asset returns the file at an address and its type.
func Asset(path string) (b []byte, media string, ok bool) {
	switch path {
	case StylePath:
		return style, "text/css; charset=utf-8", true
	case IconPath:
		return icon, "image/svg+xml", true
	}
	return nil, "", false
}
