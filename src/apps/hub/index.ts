/**
 * The hub's processes: `up` (everything in one, embedded stores), `manager` (collects, writes Redis) and `api` (mirrors Redis,
 * answers); and `cluster-monitor`, the fleet of one. Each reads a configuration, builds parts with plain constructor calls in dependency order, starts them, and
 * stops them in reverse on a signal. up.ts, manager.ts and api.ts are the wiring diagrams.
 */
export { api } from './api.ts'
export { auditTrail } from './audit-trail.ts'
export { clusterMonitor } from './cluster-monitor.ts'
export { type ClusterMonitorFlags, readClusterMonitorConfig } from './cluster-monitor-config.ts'
export { allSettings, readApiConfig, readManagerConfig, readUpConfig } from './config.ts'
export { type ConnectOptions, connect } from './connect.ts'
export { manager } from './manager.ts'
export { acceptMember, bootstrap, denyMember, detachMember, revoke } from './membership.ts'
export { unsealed } from './unsealed.ts'
export { up } from './up.ts'
