package demo

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/ayegate/ayegate/internal/strictjson"
)

// OpeningBalance is what the toy account holds at first, in whole dollars.
const OpeningBalance = 5000

// newBank is a toy bank. Its book is a text file with one line per transfer, so
// that anybody can count how often money moved.
func newBank(dir string) *toy {
	b := &bank{book: filepath.Join(dir, "bank.txt")}
	return &toy{name: "bank", tools: []tool{
		{
			name: "balance", title: "Balance", description: "Tells what the account holds.",
			schema: `{"type":"object","additionalProperties":false}`, readOnly: true, run: b.balance,
		},
		{
			name: "transfer", title: "Transfer money", description: "Pays an amount to somebody. It does not come back by itself.",
			schema: `{"type":"object","properties":{"amount_usd":{"type":"integer","minimum":1},"to":{"type":"string"}},"required":["amount_usd","to"],"additionalProperties":false}`,
			run:    b.transfer,
		},
	}}
}

type bank struct {
	mu   sync.Mutex
	book string
}

func (b *bank) balance(context.Context, []byte) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	paid, _, err := Book(b.book)
	return fmt.Sprintf("%d USD", OpeningBalance-paid), err
}

func (b *bank) transfer(_ context.Context, args []byte) (string, error) {
	var a struct {
		Amount int64  `json:"amount_usd"`
		To     string `json:"to"`
	}
	if err := strictjson.Decode(args, strictjson.Limits{}, &a); err != nil {
		return "", err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	paid, _, err := Book(b.book)
	if err != nil {
		return "", err
	}
	if a.Amount < 1 || a.Amount > OpeningBalance-paid {
		return "", fmt.Errorf("the account does not hold %d USD", a.Amount)
	}
	f, err := os.OpenFile(b.book, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	if _, err := fmt.Fprintf(f, "%d %q\n", a.Amount, a.To); err != nil {
		_ = f.Close()
		return "", err
	}
	return fmt.Sprintf("paid %d USD to %s", a.Amount, a.To), f.Close()
}

// Book reads the bank's book: what was paid in all, and in how many transfers.
func Book(name string) (paid int64, transfers int, err error) {
	text, err := os.ReadFile(name)
	if os.IsNotExist(err) {
		return 0, 0, nil
	}
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(text)) {
		var amount int64
		if _, err := fmt.Sscanf(line, "%d", &amount); err != nil {
			return 0, 0, fmt.Errorf("the bank's book cannot be read: %w", err)
		}
		paid += amount
		transfers++
	}
	return paid, transfers, nil
}
