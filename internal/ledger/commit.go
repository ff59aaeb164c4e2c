package ledger

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
)

// MinSalt is how many random bytes a salt has at least.
const MinSalt = 16

// Commit returns the commitment to value under salt: "hmac-sha256:" and the
// HMAC-SHA-256 (RFC 2104) in hexadecimal.
//
// The record holds commitments because a bare hash of a four-digit PIN is a PIN.
// The salt, at least [MinSalt] random bytes, is kept with the payload and dies
// with it: then nobody can tell any more what was committed to, and the record
// still verifies. With a shorter salt there is no commitment, the empty string,
// and no event takes that for one.
func Commit(salt []byte, value [32]byte) string {
	if len(salt) < MinSalt {
		return ""
	}
	sum := keyed(salt, value)
	const prefix = "hmac-sha256:"
	var text [len(prefix) + 2*len(sum)]byte
	copy(text[:], prefix)
	hex.Encode(text[len(prefix):], sum[:])
	return string(text[:])
}

// keyed is HMAC-SHA-256. An allowed call needs five; package hmac allocates eight
// times for each, so for the salts that are in use it is spelled out here.
func keyed(salt []byte, value [32]byte) [32]byte {
	if len(salt) > sha256.BlockSize {
		return keyedLong(salt, value)
	}
	var inner, outer [sha256.BlockSize + 32]byte
	copy(inner[:], salt)
	outer = inner
	for i := range sha256.BlockSize {
		inner[i] ^= 0x36
		outer[i] ^= 0x5c
	}
	copy(inner[sha256.BlockSize:], value[:])
	sum := sha256.Sum256(inner[:])
	copy(outer[sha256.BlockSize:], sum[:])
	return sha256.Sum256(outer[:])
}

func keyedLong(salt []byte, value [32]byte) [32]byte {
	m := hmac.New(sha256.New, salt)
	m.Write(value[:])
	return [32]byte(m.Sum(nil))
}

// Opens reports whether commitment is the one to value under salt. It is how an
// auditor who was given payload and salt ties them to the record.
func Opens(commitment string, salt []byte, value [32]byte) bool {
	return len(salt) >= MinSalt &&
		subtle.ConstantTimeCompare([]byte(commitment), []byte(Commit(salt, value))) == 1
}
