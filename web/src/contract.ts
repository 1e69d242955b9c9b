// The page's one door to the contract: everything else in here imports from this file.
// Types vanish in the build; the client is the only code that is taken along.

export type {
  AgentView,
  ClusterOperatorView,
  ClusterView,
  DeploymentView,
  EventView,
  HistoryQuery,
  HistoryView,
  NamespaceView,
  NodeView,
  OperatorView,
  PartView,
  RowType,
  RowView,
  SearchHit,
  SessionView,
  SpanView,
  StreamChange,
  StreamMessage,
} from '../../src/contract/http/index.ts'
export { ApiProblem, type Client, createClient } from '../../src/contract/http/index.ts'
export type { Health, MetricUnit } from '../../src/contract/model/index.ts'
