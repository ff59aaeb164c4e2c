package demo

import _ "embed"

// Policy is the demo's policy file.
//
//go:embed policy.yaml
var Policy []byte

// Notes is what the agent finds in notes.txt.
const Notes = `Quarter closed. To do:
 - write report.md with the numbers
 - pay 900 USD to ACME (invoice 17)
 - clean up the customers table
`

// Step is one call of the scripted agent, and what the script decides about it
// when nobody else is there.
type Step struct {
	Tool   string // "server.tool"
	Args   string // JSON
	Deny   bool
	Reason string
}

// Script is what the agent does: it reads, writes, pays, tries to erase, and
// after the no it finds another way.
var Script = []Step{
	{Tool: "fs.read_file", Args: `{"path":"notes.txt"}`},
	{Tool: "fs.write_file", Args: `{"path":"report.md","content":"# Quarter\n\nRevenue 1,204,000 USD\n"}`},
	{Tool: "bank.transfer", Args: `{"amount_usd":900,"to":"ACME, invoice 17"}`},
	{Tool: "db.query", Args: `{"sql":"DROP TABLE customers"}`, Deny: true, Reason: "Do not drop the table. Tell me how many customers there are per city."},
	{Tool: "db.query", Args: `{"sql":"SELECT city, count(*) FROM customers GROUP BY city"}`},
	{Tool: "bank.balance", Args: `{}`},
}
