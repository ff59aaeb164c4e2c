package desk

import (
	"fmt"
	"io"

	"github.com/google/uuid"
)

// crockford is the alphabet of short codes: no I, L, O, U, which people mistake.
const crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

func (d *Desk) bytes(n int) ([]byte, error) {
	d.random.Lock()
	defer d.random.Unlock()
	b := make([]byte, n)
	if _, err := io.ReadFull(d.cfg.Rand, b); err != nil {
		return nil, fmt.Errorf("desk: no randomness, nothing ran: %w", err)
	}
	return b, nil
}

func (d *Desk) newUUID() (string, error) {
	d.random.Lock()
	defer d.random.Unlock()
	id, err := uuid.NewRandomFromReader(d.cfg.Rand)
	if err != nil {
		return "", fmt.Errorf("desk: no randomness, nothing ran: %w", err)
	}
	return id.String(), nil
}

// newCode makes a short code of n characters.
func (d *Desk) newCode(n int) (string, error) {
	b, err := d.bytes(n)
	if err != nil {
		return "", err
	}
	for i := range b {
		b[i] = crockford[b[i]&31]
	}
	return string(b), nil
}
