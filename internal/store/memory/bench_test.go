package memory_test

import (
	"testing"

	"github.com/ayegate/ayegate/internal/store/storetest"
)

func Benchmark(b *testing.B) { storetest.Benchmark(b, open, 1_000, 100_000) }
