// The page's one door to the contract: everything else in here imports from this file.
// Types vanish in the build; the client is the only code that is taken along.

export type {
  AccessChangeView,
  AccessOfView,
  AgentView,
  ClusterOperatorView,
  ClusterView,
  DeploymentView,
  EventView,
  ExplainQuery,
  ExplanationView,
  FindingView,
  HistoryQuery,
  HistoryView,
  NamespaceView,
  NodeView,
  OperatorView,
  OwnPoliciesView,
  PartView,
  PermissionsView,
  PolicyView,
  PreviewView,
  RowType,
  RowView,
  SearchHit,
  SeenView,
  SessionView,
  SpanView,
  StreamChange,
  StreamMessage,
  SubjectView,
} from '../../src/contract/http/index.ts'
export { ApiProblem, type Client, createClient } from '../../src/contract/http/index.ts'
export type { Health, MetricUnit } from '../../src/contract/model/index.ts'
