import { describe, expect, it } from 'vitest'
import { ageSince, humanDuration } from './age.ts'
import { builtInResources } from './built-in.ts'
import { compilePath } from './jsonpath.ts'
import { tableOf } from './tables.ts'
import type { ApiObject } from './types.ts'

const S = 1000
const M = 60 * S
const H = 60 * M
const D = 24 * H
const Y = 365 * D

describe('humanDuration', () => {
  it.each([
    [-5 * S, '<invalid>'],
    [-S, '0s'],
    [0, '0s'],
    [119 * S, '119s'],
    [2 * M, '2m'],
    [9 * M + 5 * S, '9m5s'],
    [10 * M + 5 * S, '10m'],
    [179 * M, '179m'],
    [3 * H, '3h'],
    [3 * H + 5 * M, '3h5m'],
    [8 * H + 5 * M, '8h'],
    [47 * H, '47h'],
    [2 * D, '2d'],
    [2 * D + 3 * H, '2d3h'],
    [8 * D + 3 * H, '8d'],
    [2 * Y - D, '729d'],
    [2 * Y, '2y'],
    [2 * Y + 20 * D, '2y20d'],
    [8 * Y + 20 * D, '8y'],
  ])('says %d ms as %s', (ms, text) => expect(humanDuration(ms)).toBe(text))

  it('knows an absent time and a bad one', () => {
    expect(ageSince(undefined, 0)).toBe('<unknown>')
    expect(ageSince('never', 0)).toBe('<invalid>')
  })
})

describe('compilePath', () => {
  const value = {
    a: {
      'b.c': 1,
      d: [
        { type: 'Ready', status: 'True' },
        { type: 'Other', status: 'False' },
      ],
    },
    n: [1, 2, 3],
    __proto__: undefined,
  }
  it.each([
    ['.n[0]', [1]],
    ['.n[-1]', [3]],
    ['.n[*]', [1, 2, 3]],
    ['.a.b\\.c', [1]],
    [".a['b.c']", [1]],
    ['$.n[1]', [2]],
    ['{.n[1]}', [2]],
    ['.a.d[?(@.type=="Ready")].status', ['True']],
    [".a.d[?(@.type!='Ready')].status", ['False']],
    ['.a.d[?(@.status)].type', ['Ready', 'Other']],
    ['.none.at.all', []],
    ['.n.length', []],
    ['.constructor', []],
  ])('reads %s', (path, found) => expect(compilePath(path)?.(value)).toEqual(found))

  it.each(['a b', '.a[', '.a[?(@.x=~"y")]', '..a'])('refuses %j', (path) => expect(compilePath(path)).toBeUndefined())
})

describe('tableOf', () => {
  const nowMs = Date.parse('2026-01-10T00:00:00Z')
  const cells = (kind: string, object: Partial<ApiObject> & Record<string, unknown>): unknown[] => {
    const resource = builtInResources().find((each) => each.kind === kind)
    if (!resource) throw new Error(`no ${kind}`)
    const whole = {
      apiVersion: 'v1',
      kind,
      ...object,
      metadata: { name: 'x', creationTimestamp: '2026-01-01T00:00:00Z', ...object.metadata },
    }
    const table = tableOf(resource, [whole as ApiObject], { version: 'v1', rowObject: 'None', nowMs, metadata: {} })
    return (table as { rows: { cells: unknown[] }[] }).rows[0]?.cells ?? []
  }
  const container = (state: object, more: object = {}) => ({ name: 'c', ready: false, restartCount: 0, state, ...more })

  it.each([
    ['Running', { phase: 'Running', containerStatuses: [container({ running: {} }, { ready: true })] }, {}],
    [
      'CrashLoopBackOff',
      { phase: 'Running', containerStatuses: [container({ waiting: { reason: 'CrashLoopBackOff' } })] },
      {},
    ],
    [
      'Completed',
      { phase: 'Succeeded', containerStatuses: [container({ terminated: { reason: 'Completed', exitCode: 0 } })] },
      {},
    ],
    ['ExitCode:3', { phase: 'Failed', containerStatuses: [container({ terminated: { exitCode: 3 } })] }, {}],
    ['Signal:9', { phase: 'Failed', containerStatuses: [container({ terminated: { signal: 9, exitCode: 137 } })] }, {}],
    ['Evicted', { phase: 'Failed', reason: 'Evicted' }, {}],
    ['Terminating', { phase: 'Running' }, { deletionTimestamp: '2026-01-09T00:00:00Z' }],
    ['Pending', { phase: 'Pending' }, {}],
    ['Unknown', {}, {}],
  ])('says %s of a pod', (word, status, metadata) => {
    const spec = { containers: [{ name: 'c' }] }
    expect(cells('Pod', { metadata: { name: 'x', ...metadata }, spec, status })[2]).toBe(word)
  })

  it('says how far the first containers of a pod are', () => {
    const spec = { initContainers: [{ name: 'i' }, { name: 'j' }], containers: [{ name: 'c' }] }
    const initContainerStatuses = [
      container({ terminated: { exitCode: 0 } }),
      container({ waiting: { reason: 'PodInitializing' } }),
    ]
    expect(cells('Pod', { spec, status: { phase: 'Pending', initContainerStatuses } })[2]).toBe('Init:1/2')
  })

  it('says when a pod last restarted', () => {
    const lastState = { terminated: { finishedAt: '2026-01-09T23:00:00Z' } }
    const containerStatuses = [container({ running: {} }, { ready: true, restartCount: 4, lastState })]
    expect(cells('Pod', { spec: { containers: [{}] }, status: { containerStatuses } }).slice(1, 4)).toEqual([
      '1/1',
      'Unknown',
      '4 (60m ago)',
    ])
  })

  it.each([
    [{}, { conditions: [{ type: 'Ready', status: 'True' }] }, 'Ready'],
    [{ unschedulable: true }, { conditions: [{ type: 'Ready', status: 'Unknown' }] }, 'NotReady,SchedulingDisabled'],
    [{}, {}, 'Unknown'],
  ])('says of a node with %j %j that it is %s', (spec, status, word) => {
    expect(cells('Node', { spec, status })[1]).toBe(word)
  })

  it('names the roles of a node, sorted', () => {
    const labels = {
      'node-role.kubernetes.io/worker': '',
      'node-role.kubernetes.io/infra': '',
      'kubernetes.io/role': 'node',
    }
    expect(cells('Node', { metadata: { name: 'x', labels } })[2]).toBe('infra,node,worker')
    expect(cells('Node', {})[2]).toBe('<none>')
  })

  it('shows services, bindings and workloads as kubectl does', () => {
    const spec = {
      type: 'NodePort',
      clusterIP: '10.0.0.1',
      ports: [
        { port: 80, nodePort: 30080, protocol: 'TCP' },
        { port: 53, protocol: 'UDP' },
      ],
    }
    expect(cells('Service', { spec }).slice(1, 6)).toEqual([
      'NodePort',
      '10.0.0.1',
      '<none>',
      '80:30080/TCP,53/UDP',
      '9d',
    ])
    const subjects = [
      { kind: 'User', name: 'u' },
      { kind: 'ServiceAccount', namespace: 'n', name: 's' },
    ]
    const roleRef = { kind: 'ClusterRole', name: 'r' }
    expect(cells('RoleBinding', { roleRef, subjects })).toEqual(['x', 'ClusterRole/r', '9d', 'u', '', 'n/s'])
    expect(
      cells('Deployment', { spec: { replicas: 3 }, status: { readyReplicas: 1, updatedReplicas: 2 } }).slice(1, 4),
    ).toEqual(['1/3', 2, 0])
  })
})
