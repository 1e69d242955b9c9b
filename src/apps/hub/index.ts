/**
 * The hub's processes: `up` (everything in one, embedded stores), `manager` (collects, writes Redis) and `api` (mirrors Redis,
 * answers); and `cluster-monitor`, the fleet of one. Each reads a configuration, builds parts with plain constructor calls in dependency order, starts them, and
 * stops them in reverse on a signal. up.ts, manager.ts and api.ts are the wiring diagrams.
 * And the commands of people to a hub. Each loads its own modules when it is called: all of them take most of a second to load.
 */
import { lazily } from './lazily.ts'

export type { ClusterMonitorFlags } from './cluster-monitor-config.ts'

export const up = lazily(async () => (await import('./up.ts')).up)
export const manager = lazily(async () => (await import('./manager.ts')).manager)
export const api = lazily(async () => (await import('./api.ts')).api)
export const clusterMonitor = lazily(async () => (await import('./cluster-monitor.ts')).clusterMonitor)

const config = () => import('./config.ts')
export const readUpConfig = lazily(async () => (await config()).readUpConfig)
export const readManagerConfig = lazily(async () => (await config()).readManagerConfig)
export const readApiConfig = lazily(async () => (await config()).readApiConfig)
export const readClusterMonitorConfig = lazily(
  async () => (await import('./cluster-monitor-config.ts')).readClusterMonitorConfig,
)

export const connect = lazily(async () => (await import('./connect.ts')).connect)
const membership = () => import('./membership.ts')
export const acceptMember = lazily(async () => (await membership()).acceptMember)
export const denyMember = lazily(async () => (await membership()).denyMember)
export const revoke = lazily(async () => (await membership()).revoke)
export const detachMember = lazily(async () => (await membership()).detachMember)
export const bootstrap = lazily(async () => (await membership()).bootstrap)
export const auditTrail = lazily(async () => (await import('./audit-trail.ts')).auditTrail)
export const unsealed = lazily(async () => (await import('./unsealed.ts')).unsealed)
