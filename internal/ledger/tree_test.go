package ledger

import (
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"testing"

	"golang.org/x/mod/sumdb/tlog"
)

// Roots of the log of the first n of these leaves, as the implementations of
// Certificate Transparency publish them.
var (
	ctLeaves = []string{"", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"}
	ctRoots  = []string{
		"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
		"6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
		"fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
		"aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
		"d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
		"4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
		"76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
		"ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
		"5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
	}
)

func TestRootsAreThoseOfRFC6962(t *testing.T) {
	var f Frontier
	for n, want := range ctRoots {
		root := f.Root()
		if got := hex.EncodeToString(root[:]); got != want || f.Size() != int64(n) || f.Head() != (Head{int64(n), root}) {
			t.Errorf("root of %d leaves is %s, want %s", n, got, want)
		}
		if n < len(ctLeaves) {
			leaf, err := hex.DecodeString(ctLeaves[n])
			if err != nil {
				t.Fatal(err)
			}
			f.Append(leaf)
		}
	}
}

// All ways to the stored hashes and the root agree with tlog's own.
func TestFrontierAgreesWithTlog(t *testing.T) {
	l := new(testLog)
	for n := range int64(300) {
		if got := Position(n); got != int64(len(l.hashes)) {
			t.Fatalf("position of %d is %d, %d are stored", n, got, len(l.hashes))
		}
		root, err := tlog.TreeHash(n, l)
		if err != nil || root != l.tree.Root() {
			t.Fatalf("root of %d: %v", n, err)
		}
		read, err := NewFrontier(n, l)
		if err != nil || read != l.tree {
			t.Fatalf("frontier of %d, read back, is another one: %v", n, err)
		}
		if h, err := HeadOf(n, l); err != nil || h != l.tree.Head() {
			t.Fatalf("head of %d: %v", n, err)
		}
		entry := make([]byte, n*7)
		want, err := tlog.StoredHashes(n, entry, l)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Append(n, entry, l)
		if err != nil {
			t.Fatal(err)
		}
		before := l.tree
		l.addLine(entry)
		inMemory := before.Append(entry)
		for i, h := range want {
			if got[i] != h || inMemory[i] != h || l.hashes[Position(n)+int64(i)] != h {
				t.Fatalf("stored hash %d of entry %d", i, n)
			}
		}
		if len(got) != len(want) || len(inMemory) != len(want) || before != l.tree {
			t.Fatalf("%d, %d and %d hashes of entry %d", len(want), len(got), len(inMemory), n)
		}
	}
}

// A transaction that fails puts the frontier back by assignment.
func TestFrontierIsAValue(t *testing.T) {
	var f Frontier
	f.Append([]byte("a"))
	saved := f
	f.Append([]byte("b"))
	f = saved
	if f.Append([]byte("c")); f.Root() != tlog.NodeHash(LeafHash([]byte("a")), LeafHash([]byte("c"))) {
		t.Error("a copy shares memory with its original")
	}
}

func TestStoredTreeThatDoesNotFit(t *testing.T) {
	gone := HashReaderFunc(func([]int64) ([]Hash, error) { return nil, errBroken })
	short := HashReaderFunc(func(p []int64) ([]Hash, error) { return make([]Hash, len(p)-1), nil })
	for _, size := range []int64{-1, MaxSize + 1} {
		if _, err := NewFrontier(size, gone); !errors.Is(err, ErrTree) {
			t.Errorf("frontier of %d: %v", size, err)
		}
		if _, err := Append(size, nil, gone); !errors.Is(err, ErrTree) {
			t.Errorf("append at %d: %v", size, err)
		}
	}
	if _, err := NewFrontier(3, gone); !errors.Is(err, errBroken) {
		t.Errorf("frontier of a broken reader: %v", err)
	}
	if _, err := NewFrontier(3, short); !errors.Is(err, ErrTree) {
		t.Errorf("frontier of a short reader: %v", err)
	}
	if _, err := HeadOf(3, short); !errors.Is(err, ErrTree) {
		t.Errorf("head of a short reader: %v", err)
	}
	if _, err := Append(3, nil, gone); !errors.Is(err, errBroken) {
		t.Errorf("append with a broken reader: %v", err)
	}
	if _, err := NewFrontier(0, nil); err != nil {
		t.Errorf("frontier of nothing: %v", err)
	}
}

func TestProofs(t *testing.T) {
	l := new(testLog)
	for n := range 40 {
		l.addLine([]byte{byte(n)})
	}
	for size := range int64(41) {
		h := l.head(t, int(size))
		for seq := range size {
			p, err := ProveInclusion(size, seq, l)
			if err != nil {
				t.Fatal(err)
			}
			if err := CheckInclusion(p, h, seq, l.lines[seq]); err != nil {
				t.Errorf("%d in %d: %v", seq, size, err)
			}
			bad := append(Proof{}, p...)
			if len(bad) > 0 {
				bad[rand.IntN(len(bad))][rand.IntN(32)] ^= 1
			}
			for name, err := range map[string]error{
				"another entry":  CheckInclusion(p, h, seq, []byte("forged")),
				"another number": CheckInclusion(p, h, seq+1, l.lines[seq]),
				"a longer proof": CheckInclusion(append(bad, Hash{}), h, seq, l.lines[seq]),
			} {
				if !errors.Is(err, ErrProof) {
					t.Errorf("%s, %d in %d: %v", name, seq, size, err)
				}
			}
			if len(p) > 0 && CheckInclusion(bad, h, seq, l.lines[seq]) == nil {
				t.Errorf("a changed proof of %d in %d", seq, size)
			}
		}
		for from := range size + 1 {
			p, err := ProveConsistency(from, size, l)
			if err != nil {
				t.Fatal(err)
			}
			old := l.head(t, int(from))
			if err := CheckConsistency(p, old, h); err != nil {
				t.Errorf("%d to %d: %v", from, size, err)
			}
			old.Root[5] ^= 1
			if err := CheckConsistency(p, old, h); !errors.Is(err, ErrProof) {
				t.Errorf("AUD-04 a fork at %d of %d: %v", from, size, err)
			}
		}
	}
}

func TestProofsOfNonsense(t *testing.T) {
	l := new(testLog)
	l.addLine([]byte("a"))
	l.addLine([]byte("b"))
	h := l.tree.Head()
	empty := new(Frontier).Head()
	for _, size := range []int64{-1, MaxSize + 1, 1<<63 - 1} {
		if _, err := ProveInclusion(size, 0, l); !errors.Is(err, ErrTree) {
			t.Errorf("inclusion in %d: %v", size, err)
		}
		if _, err := ProveConsistency(0, size, l); !errors.Is(err, ErrTree) {
			t.Errorf("consistency with %d: %v", size, err)
		}
		if err := CheckInclusion(Proof{{}, {}}, Head{Size: size}, 0, nil); !errors.Is(err, ErrProof) {
			t.Errorf("inclusion in %d: %v", size, err)
		}
		if err := CheckConsistency(Proof{{}, {}}, h, Head{Size: size}); !errors.Is(err, ErrProof) {
			t.Errorf("consistency with %d: %v", size, err)
		}
	}
	for name, err := range map[string]error{
		"negative number": CheckInclusion(nil, h, -1, []byte("a")),
		"shrunk":          CheckConsistency(nil, h, l.head(t, 1)),
		"shrunk to none":  CheckConsistency(nil, h, empty),
		"empty with root": CheckConsistency(nil, Head{}, h),
		"empty, a proof":  CheckConsistency(Proof{{}}, empty, h),
		"empty to empty":  CheckConsistency(nil, empty, Head{0, Hash{1}}),
	} {
		if !errors.Is(err, ErrProof) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := ProveConsistency(2, 1, l); !errors.Is(err, ErrTree) {
		t.Errorf("shrinking: %v", err)
	}
	if err := CheckConsistency(nil, empty, h); err != nil {
		t.Errorf("from nothing: %v", err)
	}
	gone := HashReaderFunc(func([]int64) ([]Hash, error) { return nil, errBroken })
	if _, err := ProveInclusion(2, 0, gone); !errors.Is(err, errBroken) {
		t.Errorf("inclusion from a broken reader: %v", err)
	}
	if _, err := ProveConsistency(3, 4, gone); !errors.Is(err, errBroken) {
		t.Errorf("consistency from a broken reader: %v", err)
	}
}
