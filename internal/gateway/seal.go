package gateway

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/ayegate/ayegate/internal/approval"
	"github.com/ayegate/ayegate/internal/call"
)

// state is what we give a modern agent to come back with (requestState). It says
// where the agent's wait had got to and carries no right: the single run is kept
// by the desk, the arguments are hashed again when they come back, and a state
// that was altered, is another agent's, is for another method or is too old is
// refused (MCP-04).
type state struct {
	request approval.ID
	call    call.Hash // as the agent sent it, with its extras
	run     string    // id of the parked run, empty while people decide
	round   int       // how often the agent was told to come back with nothing
	issued  time.Time
}

// stateTTL is how long a state may be brought back. The deadline of the request
// is usually nearer.
const stateTTL = 24 * time.Hour

const sealPrefix = "aye1."

var errState = errors.New("requestState is not one of this gateway for this call; nothing ran. Send the call again without it")

// newSeal makes the key of all states. It lives as long as the process: after a
// restart an agent sends its call anew and joins the request that is there.
func newSeal(random io.Reader) (cipher.AEAD, error) {
	key := make([]byte, 32)
	if _, err := io.ReadFull(random, key); err != nil {
		return nil, fmt.Errorf("gateway: no randomness: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// bytes are random.
func (g *Gateway) bytes(n int) ([]byte, error) {
	g.random.Lock()
	defer g.random.Unlock()
	b := make([]byte, n)
	_, err := io.ReadFull(g.c.Rand, b)
	return b, err
}

// bound is what a state holds for besides its contents: who and what for.
func (e *exchange) bound() []byte {
	return []byte(e.client.Principal + "\x00" + e.client.Server + "\x00" + e.method)
}

// seal makes the requestState, a JSON string.
func (e *exchange) seal(s state) ([]byte, error) {
	nonce, err := e.g.bytes(e.g.sealz.NonceSize())
	if err != nil {
		return nil, err
	}
	plain := strings.Join([]string{
		string(s.request), s.call.String(), s.run, strconv.Itoa(s.round), strconv.FormatInt(e.g.c.Now().Unix(), 10),
	}, "\n")
	return quoted(sealPrefix + base64.RawURLEncoding.EncodeToString(e.g.sealz.Seal(nonce, nonce, []byte(plain), e.bound()))), nil
}

// unseal reads a requestState that an agent brings.
func (e *exchange) unseal(value []byte) (s state, err error) {
	text, ok := strings.CutPrefix(textAt(value), sealPrefix)
	if !ok {
		return s, errState
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	n := e.g.sealz.NonceSize()
	if err != nil || len(raw) < n {
		return s, errState
	}
	plain, err := e.g.sealz.Open(nil, raw[:n], raw[n:], e.bound())
	if err != nil {
		return s, errState
	}
	f := strings.Split(string(plain), "\n")
	if len(f) != 5 {
		return s, errState
	}
	hash, err := call.ParseHash(f[1])
	round, err2 := strconv.Atoi(f[3])
	unix, err3 := strconv.ParseInt(f[4], 10, 64)
	if errors.Join(err, err2, err3) != nil {
		return s, errState
	}
	s = state{request: approval.ID(f[0]), call: hash, run: f[2], round: round, issued: time.Unix(unix, 0)}
	if age := e.g.c.Now().Sub(s.issued); age > stateTTL || age < -stateTTL {
		return state{}, errState
	}
	return s, nil
}
