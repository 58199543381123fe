// Checks histories of a chaos run with Porcupine, a checker of linearizability by Anish Athalye.
//
// Usage: porcupine <histories.json> <folder for pictures>
//
// It prints one line of JSON for each history: what Porcupine says, and where it got stuck.
package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/anishathalye/porcupine"
)

// op is one operation of one hold. Times are µs of the machine's monotonic clock.
type op struct {
	Do      string `json:"do"` // "acquire" or "end"
	Hold    int    `json:"hold"`
	Client  int    `json:"client"`
	Token   int64  `json:"token"`   // 0: this lock has none
	Reads   bool   `json:"reads"`   // of a read-write lock: a reader
	HandsOn bool   `json:"handsOn"` // of a read-write lock: readers after it may have the same token
	Units   int    `json:"units"`   // of a semaphore
	Room    int    `json:"room"`    // of a semaphore: how many permits there may be when it acquires
	Call    int64  `json:"call"`
	Return  *int64 `json:"return"` // nothing: it is pending
}

type history struct {
	Name       string `json:"name"`
	Model      string `json:"model"`
	Operations []op   `json:"operations"`
}

type verdict struct {
	Name   string                `json:"name"`
	Result porcupine.CheckResult `json:"result"`
	Stuck  int                   `json:"stuck"` // the hold that fits nowhere; -1: none
}

const patience = 60 * time.Second

func main() {
	text, err := os.ReadFile(os.Args[1])
	must(err)
	var histories []history
	must(json.Unmarshal(text, &histories))
	out := json.NewEncoder(os.Stdout)
	for i, one := range histories {
		model, known := models[one.Model]
		if !known {
			must(fmt.Errorf("there is no model %q", one.Model))
		}
		result, info := porcupine.CheckOperationsVerbose(model, operations(one), patience)
		stuck := -1
		if result == porcupine.Illegal {
			stuck = firstMissing(one, info)
			must(porcupine.VisualizePath(model, info, filepath.Join(os.Args[2], fmt.Sprintf("porcupine-%d.html", i))))
		}
		must(out.Encode(verdict{one.Name, result, stuck}))
	}
}

func operations(of history) []porcupine.Operation {
	all := make([]porcupine.Operation, len(of.Operations))
	for i, one := range of.Operations {
		end := int64(math.MaxInt64)
		if one.Return != nil {
			end = *one.Return
		}
		all[i] = porcupine.Operation{ClientId: one.Client, Input: one, Call: one.Call, Return: end}
	}
	return all
}

// firstMissing is the hold of the earliest operation that the longest linearization has no place for. Porcupine tells
// linearizations in any order: of several that are equally long, the one that gets furthest in time counts.
func firstMissing(of history, info porcupine.LinearizationInfo) int {
	missing, length, first := -1, -1, int64(-1)
	for _, partition := range info.PartialLinearizationsOperations() {
		for _, order := range partition {
			if len(order) < length {
				continue
			}
			hold, at := earliestMissing(of, order)
			if len(order) > length || at > first || at == first && hold > missing {
				missing, length, first = hold, len(order), at
			}
		}
	}
	return missing
}

// earliestMissing is the operation that returned first of those that are not in the order: its hold, and when it returned.
func earliestMissing(of history, order []porcupine.Operation) (int, int64) {
	placed := map[op]bool{}
	for _, one := range order {
		placed[one.Input.(op)] = true
	}
	missing, first := -1, int64(math.MaxInt64)
	for _, one := range of.Operations {
		if one.Return != nil && *one.Return < first && !placed[one] {
			missing, first = one.Hold, *one.Return
		}
	}
	return missing, first
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}
