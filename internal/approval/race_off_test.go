//go:build !race

package approval_test

const slow = false
