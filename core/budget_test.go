package core_test

import (
	"strings"
	"testing"
	"time"

	"agent-sandboxing/core"
)

func TestTurnLimits_RaisedDoublesUpToTheCeilings(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		had, want core.TurnLimits
		more      bool
	}{
		{core.TurnLimits{Steps: 60, Minutes: 30}, core.TurnLimits{Steps: 120, Minutes: 60}, true},
		{core.TurnLimits{Steps: 200, Minutes: 30}, core.TurnLimits{Steps: 240, Minutes: 60}, true},
		{core.TurnLimits{Steps: 240, Minutes: 30}, core.TurnLimits{Steps: 240, Minutes: 60}, true},
		{core.TurnLimits{Steps: 300, Minutes: 240}, core.TurnLimits{Steps: 300, Minutes: 240}, false}, // the ceiling was lowered since
		{core.TurnLimits{Steps: 60}, core.TurnLimits{Steps: 120}, true},
		{core.TurnLimits{}, core.TurnLimits{}, false},
	} {
		if got, more := test.had.Raised(240); got != test.want || more != test.more {
			t.Errorf("%+v raised is %+v, %v; want %+v, %v", test.had, got, more, test.want, test.more)
		}
	}
}

func TestBudgets_CheckFailsFromTheCapOn(t *testing.T) {
	t.Parallel()
	ends := time.Date(2027, 1, 1, 1, 0, 0, 0, time.FixedZone("CET", 3600))
	for _, test := range []struct {
		budgets core.Budgets
		spent   core.Spending
		code    string
	}{
		{core.Budgets{}, core.Spending{SessionUSD: 1e9, MonthUSD: 1e9}, ""},
		{core.Budgets{SessionUSD: 1, MonthUSD: 1}, core.Spending{SessionUSD: 0.99, MonthUSD: 0.99}, ""},
		{core.Budgets{SessionUSD: 1}, core.Spending{SessionUSD: 1}, core.CodeSessionBudget},
		{core.Budgets{MonthUSD: 1}, core.Spending{SessionUSD: 9, MonthUSD: 1, MonthEnds: ends}, core.CodeMonthBudget},
	} {
		err := test.budgets.Check(test.spent)
		if test.code == "" && err != nil || test.code != "" && core.CodeOf(err) != test.code {
			t.Errorf("%+v of %+v: %v, want %q", test.spent, test.budgets, err, test.code)
		}
		if test.code == core.CodeMonthBudget && !strings.Contains(core.MessageOf(err), "2027-01-01 00:00 UTC") {
			t.Errorf("the sentence does not say when the month ends, in UTC: %s", core.MessageOf(err))
		}
	}
}

func TestDollars(t *testing.T) {
	t.Parallel()
	for usd, want := range map[float64]string{0: "$0.00", 0.0042: "$0.0042", 0.01: "$0.01", 1.2: "$1.20", 120: "$120.00"} {
		if got := core.Dollars(usd); got != want {
			t.Errorf("%v is %s, want %s", usd, got, want)
		}
	}
}
