import { routesAccess } from './access.ts'
import { getCluster, listClusters } from './clusters.ts'
import type { RouteContract } from './contract.ts'
import { listEvents, openStream, openStreamSocket } from './events.ts'
import { getHistory, typeHistory, v1ClusterHistory, v1NodeHistory } from './history.ts'
import { decideMember, getClusterSet, getMemberDecisions, listClusterSets } from './members.ts'
import { listDeployments, listNamespaces } from './namespaces.ts'
import { getNode, listNodes } from './nodes.ts'
import { listClusterOperators, listOperators } from './operators.ts'
import { healthz, metrics, openApi, readyz } from './probes.ts'
import { routesPromQl } from './promql.ts'
import { getRegistry, listRegistries, v1RegistriesStatus } from './registries.ts'
import { search } from './search.ts'
import { authLogout, authMe, authPermissions, authStatus, getSession } from './session.ts'
import {
  getType,
  groupFleetRows,
  listCustomRows,
  listFleetRows,
  listSources,
  listTypes,
  trySource,
  v1CustomResources,
  v1CustomTypeClusters,
  v1CustomTypes,
} from './types.ts'
import { routesV1 } from './v1.ts'

/** Every route of the API. The OpenAPI document is made of these, and the server registers exactly these. */
export const routes: readonly RouteContract[] = [
  healthz,
  readyz,
  metrics,
  openApi,
  getSession,
  authStatus,
  authMe,
  authPermissions,
  authLogout,
  ...routesAccess,
  ...routesV1,
  v1ClusterHistory,
  v1NodeHistory,
  getHistory,
  typeHistory,
  ...routesPromQl,
  openStream,
  openStreamSocket,
  listClusters,
  getCluster,
  listNodes,
  getNode,
  listNamespaces,
  listDeployments,
  listOperators,
  listClusterOperators,
  listEvents,
  listRegistries,
  getRegistry,
  v1RegistriesStatus,
  listClusterSets,
  getClusterSet,
  getMemberDecisions,
  decideMember,
  listTypes,
  getType,
  listCustomRows,
  listFleetRows,
  groupFleetRows,
  trySource,
  listSources,
  v1CustomResources,
  v1CustomTypes,
  v1CustomTypeClusters,
  search,
]
