package ledger

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"testing"
)

// A commitment is an HMAC-SHA-256 whatever the salt's length: an auditor opens it
// with any implementation of RFC 2104.
func TestCommitIsHMAC(t *testing.T) {
	value := sha256.Sum256([]byte("1234"))
	salt := make([]byte, 0, 200)
	for n := range 200 {
		if n >= MinSalt {
			m := hmac.New(sha256.New, salt)
			m.Write(value[:])
			if got, want := Commit(salt, value), "hmac-sha256:"+hex.EncodeToString(m.Sum(nil)); got != want {
				t.Fatalf("salt of %d bytes: %s, want %s", n, got, want)
			}
		}
		salt = append(salt, byte(n*7))
	}
}
