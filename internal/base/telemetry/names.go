package telemetry

import "go.opentelemetry.io/otel/attribute"

// SchemaURL is the version of the semantic conventions for HTTP that the names here follow.
// Those for generative AI and MCP are still in development (status of November 2026): what
// they rename is changed in this file and nowhere else.
const SchemaURL = "https://opentelemetry.io/schemas/1.37.0"

// scope is the name under which all of it is reported.
const scope = "github.com/mortise-dev/mortise"

// Spans. A call's has the name of its operation behind it, and a request's is METHOD ROUTE.
const (
	spanTool  = "execute_tool"
	spanAgent = "invoke_agent"
	spanStage = "mortise." // and the stage
)

// Attributes of spans and of metrics.
const (
	attrOperation = attribute.Key("gen_ai.operation.name") // execute_tool or invoke_agent
	attrTool      = attribute.Key("gen_ai.tool.name")      // plugin/operation
	attrAgent     = attribute.Key("gen_ai.agent.name")     // plugin/operation
	attrCallID    = attribute.Key("gen_ai.tool.call.id")
	attrErrorType = attribute.Key("error.type") // the code of the error

	attrTenant    = attribute.Key("mortise.tenant")
	attrKind      = attribute.Key("mortise.kind")
	attrOrigin    = attribute.Key("mortise.origin")
	attrVersion   = attribute.Key("mortise.plugin.version")
	attrDigest    = attribute.Key("mortise.plugin.digest")
	attrDecision  = attribute.Key("mortise.decision")
	attrPolicy    = attribute.Key("mortise.policy.id")
	attrIsolation = attribute.Key("mortise.isolation")
	attrApproval  = attribute.Key("mortise.approval.id")
	attrStatus    = attribute.Key("mortise.status")
	attrAttempt   = attribute.Key("mortise.attempt")

	attrMethod     = attribute.Key("http.request.method")
	attrRoute      = attribute.Key("http.route")
	attrStatusCode = attribute.Key("http.response.status_code")

	attrOutcome = attribute.Key("outcome") // of a call: its status, or the code of its error
)

// Metrics. Prometheus shows them with _ for each dot, and with their units.
const (
	metricRequests  = "http.server.request.duration"   // s, by method, route and status
	metricCalls     = "mortise.calls"                  // by tenant, operation and outcome
	metricDurations = "mortise.call.duration"          // s, by kind of operation
	metricWaiting   = "mortise.calls.waiting"          // by tenant and state; a gauge
	metricUnwritten = "mortise.ledger.unwritten"       // entries; a gauge
	metricApprovals = "mortise.approval.wait.duration" // s, by tenant and verdict
)
