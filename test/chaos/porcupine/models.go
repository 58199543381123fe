package main

import (
	"fmt"

	"github.com/anishathalye/porcupine"
)

// What a lock, a read-write lock and a semaphore do, one operation after the other. A hold begins with "acquire" and ends
// with "end", which frees what it had. States are values that == compares.
var models = map[string]porcupine.Model{"lock": lock, "readWrite": readWrite, "semaphore": semaphore}

type owned struct {
	holder int // 0: it is free
	token  int64
}

// One holder at a time; each token is larger than the one before.
var lock = porcupine.Model{
	Init: func() interface{} { return owned{} },
	Step: func(state, input, _ interface{}) (bool, interface{}) {
		now, one := state.(owned), input.(op)
		if one.Do == "end" {
			return now.holder == one.Hold, owned{0, now.token}
		}
		if one.Token == 0 {
			return now.holder == 0, owned{one.Hold, now.token}
		}
		return now.holder == 0 && one.Token > now.token, owned{one.Hold, one.Token}
	},
	DescribeOperation: describe,
	DescribeState:     func(state interface{}) string { return fmt.Sprintf("%+v", state) },
}

type divided struct {
	writer  int // 0: none is inside
	readers int // how many are inside
	token   int64
	shares  bool // the last token may be a reader's once more
}

// Any number of readers, or one writer. A writer's token is larger than all before it; readers that no writer divides share one.
var readWrite = porcupine.Model{
	Init: func() interface{} { return divided{} },
	Step: func(state, input, _ interface{}) (bool, interface{}) {
		now, one := state.(divided), input.(op)
		switch {
		case one.Do == "end" && one.Reads:
			ok := now.readers > 0
			now.readers--
			return ok, now
		case one.Do == "end":
			ok := now.writer == one.Hold
			now.writer = 0
			return ok, now
		case one.Reads:
			ok := now.writer == 0 && (one.Token > now.token || one.Token == now.token && now.shares)
			return ok, divided{0, now.readers + 1, one.Token, true}
		default:
			ok := now.writer == 0 && now.readers == 0 && one.Token > now.token
			return ok, divided{one.Hold, 0, one.Token, one.HandsOn}
		}
	},
	DescribeOperation: describe,
	DescribeState:     func(state interface{}) string { return fmt.Sprintf("%+v", state) },
}

// No more permits in use than there are when one is acquired: what is held is not taken away when the number is lowered.
var semaphore = porcupine.Model{
	Init: func() interface{} { return 0 },
	Step: func(state, input, _ interface{}) (bool, interface{}) {
		used, one := state.(int), input.(op)
		if one.Do == "end" {
			return used >= one.Units, used - one.Units
		}
		return used+one.Units <= one.Room, used + one.Units
	},
	DescribeOperation: describe,
	DescribeState:     func(state interface{}) string { return fmt.Sprintf("%d in use", state) },
}

func describe(input, _ interface{}) string {
	one := input.(op)
	return fmt.Sprintf("%s %d (token %d, units %d)", one.Do, one.Hold, one.Token, one.Units)
}
