/**
 * The HTTP API as both ends agree on it: views, route contracts, problem format, OpenAPI document, typed client.
 *
 *   contract (method, url, access, schemas) → the server registers it, the OpenAPI document shows it, the client calls it
 *
 * The web page sees this module and `model` only. client.ts imports types only: a page that needs no schema bundles none.
 */
export {
  type AccessChangeView,
  type AccessOfView,
  accessOf,
  authCacheClear,
  authCallback,
  authExplain,
  authLogin,
  authPassword,
  authPolicies,
  type ExplanationView,
  endViewAs,
  type FindingView,
  listPolicies,
  type PoliciesView,
  type PolicyView,
  type PreviewView,
  previewPolicies,
  type SeenView,
  type SubjectView,
  viewAs,
} from './access.ts'
export {
  ApiProblem,
  type Client,
  type ClientOptions,
  createClient,
  type ExplainQuery,
  type FleetRowsQuery,
  type HistoryQuery,
  type PreviewQuestion,
  type RowGroupsQuery,
  type RowsPageQuery,
  type RowsStreamQuery,
  type StreamQuery,
} from './client.ts'
export { getCluster, listClusters } from './clusters.ts'
export type { Access, AnswerOf, BodyOf, ParamsOf, QueryOf, RouteContract } from './contract.ts'
export { listEvents, openStream, openStreamSocket } from './events.ts'
export {
  type FillingView,
  getHistory,
  type HistoryView,
  HistoryViewSchema,
  maxHistoryPoints,
  maxHistorySeries,
  type SpanView,
  typeHistory,
  v1ClusterHistory,
  v1NodeHistory,
} from './history.ts'
export {
  type ClusterSetsView,
  type ClusterSetView,
  decideMember,
  getClusterSet,
  getMemberDecisions,
  listClusterSets,
  type MemberDecidedView,
  type MemberDecisionsView,
  type MemberDecisionView,
} from './members.ts'
export { listDeployments, listNamespaces } from './namespaces.ts'
export { getNode, listNodes } from './nodes.ts'
export { openApiDocument } from './openapi.ts'
export { listClusterOperators, listOperators } from './operators.ts'
export { maxPageSize } from './parameters.ts'
export { healthz, metrics, openApi, readyz } from './probes.ts'
export { isProblemCode, type ProblemCode, problemStatus } from './problems.ts'
export {
  byForm,
  type PromQlAnswer,
  promQlBuildInfo,
  promQlExemplars,
  promQlLabels,
  promQlLabelValues,
  promQlMetadata,
  promQlQuery,
  promQlRange,
  promQlRules,
  promQlSeries,
} from './promql.ts'
export {
  getRegistry,
  listRegistries,
  type RegistryDetailView,
  type RegistryView,
  v1RegistriesStatus,
} from './registries.ts'
export { routes } from './routes.ts'
export { search } from './search.ts'
export {
  authLogout,
  authMe,
  authPermissions,
  authStatus,
  getSession,
  type OwnPoliciesView,
  type PermissionsView,
} from './session.ts'
export { isWhole, type StoreView, storeCause, storeText, storeTitle, warningOf } from './store.ts'
export {
  applyRows,
  type HeldRows,
  noRows,
  type RowsAgeView,
  type RowsChange,
  type RowsMessage,
  rowKey,
  type StreamMessage,
} from './stream.ts'
export type { StreamedMessage } from './stream-client.ts'
export {
  type AggregatedView,
  type AggregationInfoView,
  type ColumnView,
  type DeclaredSourceView,
  type FleetPageView,
  type FleetRowView,
  getType,
  groupFleetRows,
  listCustomRows,
  listFleetRows,
  listSources,
  listTypes,
  type RowGroupsView,
  type RowGroupView,
  type RowLinkView,
  type RowsPageView,
  type SourceFindingView,
  type SourcesView,
  type SourceTrialView,
  type SourceView,
  type TableRowView,
  type TypeOnClusterView,
  type TypeView,
  trySource,
  v1CustomResources,
  v1CustomTypeClusters,
  v1CustomTypes,
} from './types.ts'
export {
  v1GetCluster,
  v1GetNode,
  v1ListAlerts,
  v1ListClusterOperators,
  v1ListClusters,
  v1ListEvents,
  v1ListNamespaces,
  v1ListNodes,
  v1ListOperators,
} from './v1.ts'
export * from './views.ts'
