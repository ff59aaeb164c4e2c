//go:build race

package approval_test

// slow says that the race detector makes everything ten times slower: the model
// then searches a smaller world. The whole one is searched without it.
const slow = true
