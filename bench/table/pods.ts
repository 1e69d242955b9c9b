import type { TableRow } from '#model'

// Rows of the benches of tables.
export const fields = [
  ...['phase', 'reason', 'ready', 'containers', 'restarts', 'lastRestart', 'oomKills', 'node', 'owner', 'ownerKind'],
  ...['ip', 'qos', 'cpuCores', 'memoryBytes'],
]

export const mixed = (i: number): number => Math.imul(i ^ (i >>> 15), 0x9e3779b1) >>> 0
export const hex = (i: number, length: number): string => mixed(i).toString(16).padStart(8, '0').slice(0, length)

/** As four replicas of a Deployment have them: one pod in fifty waits, one in seventeen was restarted. */
export function pod(i: number): TableRow {
  const [deployment, namespace] = [Math.floor(i / 4), `team-${Math.floor(i / 200)}`]
  const [app, hash] = [`service-${deployment % 50}`, hex(deployment, 8)]
  const [waits, restarted] = [i % 50 === 0, i % 17 === 0]
  return {
    namespace,
    name: `${app}-${hash}-${hex(i, 5)}`,
    labels: { app, 'pod-template-hash': hash, team: namespace },
    values: {
      ...{ phase: waits ? 'Pending' : 'Running', reason: waits ? 'ImagePullBackOff' : null, ready: !waits },
      ...{ containers: 1 + (i % 3), restarts: restarted ? i % 5 : 0, oomKills: 0 },
      ...{ lastRestart: restarted ? 1.7e12 + i * 1000 : null, node: `worker-${mixed(i) % 1000}` },
      ...{ owner: `${app}-${hash}`, ownerKind: 'ReplicaSet', ip: `10.${i % 256}.${(i >> 8) % 256}.${i % 250}` },
      ...{ qos: ['Burstable', 'Guaranteed', 'BestEffort'][i % 3] ?? null },
      ...{ cpuCores: (i % 8) / 4, memoryBytes: (i % 16) * 2 ** 28 },
    },
  }
}
