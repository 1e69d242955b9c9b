import { describe, expect, it } from 'vitest'
import type { KubeObject } from '#kube'
import type { BuiltInResource } from '#metricsource'
import { kollectInventories } from './kollect-inventories.ts'
import { kollectSinks } from './kollect-sinks.ts'
import { kollectTargets } from './kollect-targets.ts'

const said = (type: string, status: 'True' | 'False', reason: string, message = '', at = '2026-11-01T00:00:00Z') => ({
  ...{ type, status, reason, message, lastTransitionTime: at },
})

function rowOf(kind: BuiltInResource, object: object, which = 0): Readonly<Record<string, unknown>> {
  const target = kind.targets[which]
  if (!target) throw new Error('it reads nothing')
  const builder = kind.collect(0, target)
  builder.add({ metadata: { name: 'apps', namespace: 'shop' }, ...object } as KubeObject)
  const [row] = builder.rows().rows()
  if (!row) throw new Error('it is no row')
  return row.values
}

describe('a target of inventory', () => {
  it.each([
    ['no status', { spec: { profileRef: 'apps' } }, { status: 'Waiting', why: null, rows: null, profile: 'apps' }],
    [
      'all it chooses',
      {
        spec: { profileRef: { name: 'all', namespace: 'shop' } },
        status: { collectedCount: 3, extractionFailures: 1, conditions: [said('Ready', 'True', 'Collecting')] },
      },
      { status: 'Ready', why: null, rows: 3, failures: 1, profile: 'all' },
    ],
    [
      'a profile that is not there',
      { status: { conditions: [said('Ready', 'False', 'ProfileNotFound'), said('Degraded', 'True', 'x', 'make it')] } },
      { status: 'Degraded', why: 'make it' },
    ],
    [
      'been suspended',
      { spec: { suspend: true }, status: { conditions: [said('Ready', 'True', '')] } },
      { status: 'Suspended' },
    ],
    ['a status of another kind', { spec: 7, status: { conditions: 'none' } }, { status: 'Waiting' }],
  ])('that has %s', (_, object, expected) => {
    expect(rowOf(kollectTargets, object)).toMatchObject(expected)
  })
})

describe('the namespaces that a target may speak of', () => {
  const of = (spec: object, status: object = {}) => rowOf(kollectTargets, { spec, status }).about
  it('are its own, those it names, and those its status says', () => {
    expect(of({})).toBe('shop')
    expect(of({ includedNamespaces: ['shop', 'shop2'] })).toBe('shop, shop2')
    expect(of({ namespaceSelector: {} }, { matchedNamespaces: ['b', 'c'], effectiveNamespaces: ['b'] })).toBe(
      'b, c, shop',
    )
    expect(of({ includedNamespaces: ['gone'] }, { matchedNamespaces: ['b'] })).toBe('b, gone, shop')
  })

  it('are not known while a choice comes to nothing that is known, and of very many', () => {
    expect(of({ namespaceSelector: {} })).toBeNull()
    expect(of({ includedNamespaces: ['team-*'] })).toBeNull()
    const many = Array.from({ length: 1000 }, (_, i) => `n${i}`)
    expect(of({ namespaceSelector: {} }, { matchedNamespaces: many })).toBeNull()
  })
})

describe('an inventory', () => {
  it('says of its sinks which fail since when, and who else writes there', () => {
    const conflict = "east writes rows of cluster 'west'. Give one of both clusters another identity, or stop one"
    const status = {
      itemCount: 12,
      conditions: [said('Ready', 'True', 'PartiallySynced'), said('Complete', 'False', 'TargetDegraded')],
      sinkExports: [
        {
          name: 'database/warehouse',
          lastExportTime: '2026-11-02T00:00:00Z',
          conditions: [said('Synced', 'True', 'Exported')],
        },
        { name: 'snapshot/git', conditions: [said('Synced', 'False', 'Pending', 'nothing was exported yet')] },
        {
          name: 'event/nats',
          behindSince: '2026-11-02T23:00:00Z',
          conditions: [said('Synced', 'False', 'WriterConflict', conflict, '2026-11-03T00:00:00Z')],
        },
      ],
    }
    expect(rowOf(kollectInventories, { status })).toEqual({
      ...{ status: 'Ready', kind: 'KollectInventory', rows: 12, complete: 'Incomplete', sinks: 3, failing: 1 },
      ...{ failingSince: Date.parse('2026-11-03T00:00:00Z'), lastExportAt: Date.parse('2026-11-02T00:00:00Z') },
      ...{ conflict, why: null, createdAt: null, behindSince: Date.parse('2026-11-02T23:00:00Z') },
      exports: [
        expect.objectContaining({ sink: 'database/warehouse', status: 'Exported' }),
        expect.objectContaining({ sink: 'snapshot/git', status: 'Pending', lastWriteAt: null }),
        expect.objectContaining({
          ...{ sink: 'event/nats', status: 'WriterConflict', message: conflict },
          behindSinceAt: Date.parse('2026-11-02T23:00:00Z'),
        }),
      ],
    })
    const waits = {
      conditions: [said('Ready', 'True', 'DeletionsWait'), said('Synced', 'False', 'DeletionsWait', '2 rows')],
    }
    expect(rowOf(kollectInventories, { status: waits })).toMatchObject({ status: 'Ready', why: '2 rows' })
    expect(rowOf(kollectInventories, {}, 1)).toMatchObject({
      ...{ kind: 'KollectClusterInventory', sinks: 0, rows: null, behindSince: null },
    })
  })
})

describe('a sink of inventory', () => {
  it.each([
    ['was not looked at', {}, { status: 'Not tested', why: null }],
    [
      'answers',
      { conditions: [said('ConnectionVerified', 'True', 'ConnectionOK', 'fine')] },
      { status: 'Connected', why: null },
    ],
    [
      'does not answer',
      { conditions: [said('ConnectionVerified', 'False', 'ConnectionTestFailed', 'no route')] },
      { status: 'Not reachable', why: 'no route' },
    ],
    [
      'cannot be used',
      { conditions: [said('Degraded', 'True', 'SecretMissing', 'make it')] },
      { status: 'Degraded', why: 'make it' },
    ],
  ])('that %s', (_, status, expected) => {
    const spec = { type: 'postgres', cluster: 'west', endpoint: 'postgres://user:secret@host' }
    const row = rowOf(kollectSinks, { spec, status })
    expect(row).toMatchObject({ type: 'postgres', writesAs: 'west', ...expected })
    // Where it is may hold credentials of old.
    expect(JSON.stringify(row)).not.toContain('secret@')
  })

  const written = { inventories: 2, itemCount: 7, lastExportTime: '2026-11-02T00:00:00Z' }
  const at = Date.parse
  it.each([
    ['the agent says nothing of it', {}, { exports: null, rows: null, lastExportAt: null, behindSince: null }],
    ['no inventory names it', { inventories: 0 }, { exports: 'Not used', rows: null }],
    [
      'it got nothing yet',
      { inventories: 1, conditions: [said('Synced', 'False', 'Pending')] },
      { exports: 'Nothing yet', failingSince: null },
    ],
    [
      'it holds all',
      { ...written, conditions: [said('Synced', 'True', 'Exported')] },
      { exports: 'Caught up', rows: 7, lastExportAt: at('2026-11-02T00:00:00Z'), behindSince: null, why: null },
    ],
    [
      'rows that are gone stand there',
      { ...written, conditions: [said('Synced', 'False', 'DeletionsWait', '2 rows stand there still')] },
      { exports: 'Deletions wait', why: '2 rows stand there still', failingSince: null, conflict: null },
    ],
    [
      'they stand there for longer than a minute',
      {
        ...{ ...written, behindSince: '2026-11-02T01:00:00Z' },
        conditions: [said('Synced', 'False', 'DeletionsWait', '2 rows stand there still')],
      },
      { exports: 'Deletions wait', why: '2 rows stand there still', behindSince: at('2026-11-02T01:00:00Z') },
    ],
    [
      'it lacks something for long',
      {
        ...{ ...written, behindSince: '2026-11-02T01:00:00Z' },
        conditions: [said('Synced', 'False', 'Behind', 'it lacks what changed')],
      },
      {
        ...{ exports: 'Behind', why: 'it lacks what changed' },
        ...{ behindSince: at('2026-11-02T01:00:00Z'), failingSince: null },
      },
    ],
    [
      'it refuses',
      { ...written, conditions: [said('Synced', 'False', 'Forbidden', 'grant insert')] },
      { exports: 'Failing', failingSince: at('2026-11-01T00:00:00Z'), why: 'grant insert', conflict: null },
    ],
    [
      'another agent writes there',
      { ...written, conditions: [said('Synced', 'False', 'WriterConflict', 'east does')] },
      { exports: 'Other writer', conflict: 'east does', why: 'east does' },
    ],
  ])('says how exports stand where %s', (_, status, expected) => {
    expect(rowOf(kollectSinks, { spec: { type: 'postgres' }, status })).toMatchObject(expected)
  })
})
