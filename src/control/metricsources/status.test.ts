import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { MetricSourceStatus } from '#kinds'
import type { ClusterState, FieldReport, RowsState } from '#model'
import { collectedOf } from './collected.ts'
import { fieldValidation } from './field-validation.ts'
import { goDuration } from './go-duration.ts'
import { type StatusFacts, saysTheSame, sourceStatus, statusPatch } from './status.ts'
import { aCluster, aRowsState, type ReportedSource } from './testing/fleet.ts'
import { aSpec, conditionOf } from './testing/hub.ts'

const ID = 'clusterpulse/disks'
const NOW = Date.parse('2026-05-04T10:00:00Z')

/** Clusters by what they told of the source; undefined: nothing. */
const collected = (told: Readonly<Record<string, ReportedSource | undefined>>, hash = 'h') =>
  collectedOf(
    ID,
    Object.entries(told).map(([name, one]) =>
      aCluster(name, one ? new Map([[ID, aRowsState(ID, { hash: 'h', at: NOW, ...one })]]) : undefined),
    ),
    hash,
  )

const facts = (over: Partial<StatusFacts> = {}): StatusFacts => ({
  ...{ generation: 1, spec: aSpec(), stored: undefined, findings: [], inForce: { generation: 1 } },
  ...{ storeTrouble: undefined, collected: collected({}), typeNameOf: undefined, now: NOW },
  ...over,
})
const report = (field: string, missing: number, malformed = 0, example = ''): FieldReport => ({
  ...{ field, missing, malformed, example },
})

describe('the status of a MetricSource', () => {
  it.each<[string, Partial<StatusFacts>, string, readonly [ready: string, reason: string]]>([
    ['no clusters', { collected: collected({}) }, 'No cluster is connected yet', ['Unknown', 'Pending']],
    [
      'nothing told yet',
      { collected: collected({ east: undefined }) },
      'Waiting for the first collection',
      ['Unknown', 'Pending'],
    ],
    [
      'all read',
      { collected: collected({ east: { rows: 2 } }) },
      'Collection successful',
      ['True', 'CollectionSuccessful'],
    ],
    [
      'a kind that only some have',
      { collected: collected({ east: { rows: 2 }, west: { outcome: 'absent' } }) },
      'Collection successful',
      ['True', 'CollectionSuccessful'],
    ],
    [
      'a kind that none has',
      { collected: collected({ east: { outcome: 'absent', code: 'absent' } }) },
      'No cluster serves PersistentVolumeClaim of v1',
      ['False', 'KindAbsent'],
    ],
    [
      'every cluster failing',
      { collected: collected({ east: { outcome: 'unreachable', code: 'c', message: 'no answer' } }) },
      'Collected with 1 error, first on east: no answer',
      ['False', 'CollectionFailed'],
    ],
    [
      'too many objects',
      { collected: collected({ east: { rows: 2, truncated: true } }) },
      'Collection successful; 1 cluster with more objects than maxResources',
      ['True', 'CollectionSuccessful'],
    ],
    [
      'a warning',
      {
        collected: collected({ east: {} }),
        findings: [{ severity: 'warning', code: 'w', path: 'spec.rbac', message: 'odd' }],
      },
      'Collection successful; 1 warning: spec.rbac: odd',
      ['True', 'CollectionSuccessful'],
    ],
  ])('says it of %s', (_, over, message, [status, reason]) => {
    const said = sourceStatus(facts(over))
    expect(said.message).toBe(message)
    const phases: Readonly<Record<string, string>> = {
      Pending: 'Pending',
      KindAbsent: 'Error',
      CollectionFailed: 'Error',
      CollectedWithErrors: 'Degraded',
    }
    expect(said.phase).toBe(phases[reason] ?? 'Active')
    expect(conditionOf(said, 'Ready')).toMatchObject({ status, reason })
    // Nor does it, for want of knowing better, while the next process loads its state.
    if (status !== 'Unknown')
      expect(sourceStatus(facts({ ...over, stored: said, collected: undefined })).phase).toBe(said.phase)
  })

  it('counts namespaces and clusters that could not be read, and no cluster that lacks the kind', () => {
    const errors = ['a', 'b'].map((namespace) => ({
      ...{ namespace, outcome: 'forbidden' as const, code: 'kube_forbidden', message: 'may not' },
    }))
    const said = sourceStatus(
      facts({
        collected: collected({
          a: { rows: 1 },
          b: { outcome: 'absent', code: 'kind_absent', message: 'no such kind' },
          c: { rows: 4, errors },
          d: { outcome: 'unreachable', code: 'kube_unreachable', message: 'no answer' },
        }),
      }),
    )
    expect(said).toMatchObject({ resourcesCollected: 5, clustersCollected: 2, errorsLastRun: 3 })
    expect(said.clusters?.map(({ name }) => name)).toEqual(['c', 'd', 'b', 'a'])
    expect(said.clusters?.[0]).toMatchObject({
      ...{ collected: true, errors: 2, reason: 'kube_forbidden', message: 'namespace a: may not' },
    })
    expect(conditionOf(said, 'Collected')?.message).toBe('c: namespace a: may not; d: no answer')
  })

  it('is well where all that is missing is a cluster that does not answer at all, and says which', () => {
    const unreachable = { outcome: 'unreachable', code: 'kube_unreachable', message: 'no answer' } as const
    const tables = new Map([[ID, aRowsState(ID, { hash: 'h', at: NOW, ...unreachable })]])
    const gone = {
      ...unreachable,
      attemptedAt: NOW,
      freshness: null,
      rows: new Map(),
    } as unknown as ClusterState['parts']['cluster']
    const off = (name: string): ClusterState => ({
      ...aCluster(name, tables),
      parts: { cluster: gone } as ClusterState['parts'],
    })
    const well = aCluster('east', new Map([[ID, aRowsState(ID, { rows: 2, hash: 'h', at: NOW })]]))
    const said = sourceStatus(facts({ collected: collectedOf(ID, [well, off('west')], 'h') }))
    expect(said).toMatchObject({
      phase: 'Active',
      errorsLastRun: 0,
      message: 'Collected from 1 of 2 clusters; not reached: west',
    })
    expect(conditionOf(said, 'Collected')).toMatchObject({ status: 'True', reason: 'ReachableRead' })
    expect(conditionOf(said, 'Ready')?.status).toBe('True')
    expect(said.clusters?.[0]).toMatchObject({ name: 'west', collected: false, message: 'no answer' })
    // Where nothing is left, or the kind alone fails on a cluster that answers, it is not.
    expect(sourceStatus(facts({ collected: collectedOf(ID, [off('west')], 'h') })).phase).toBe('Error')
    expect(sourceStatus(facts({ collected: collectedOf(ID, [well, aCluster('west', tables)], 'h') })).phase).toBe(
      'Degraded',
    )
  })

  it('names at most 50 clusters, and none that fails is left out for one that does not', () => {
    const told = Object.fromEntries(
      Array.from({ length: 70 }, (_, i) => [
        `c${String(i).padStart(2, '0')}`,
        i < 65 ? { rows: 1 } : { outcome: 'unreachable' as const, code: 'x', message: 'y' },
      ]),
    )
    const said = sourceStatus(facts({ collected: collected(told) }))
    expect(said.clusters).toHaveLength(50)
    expect(said.clusters?.slice(0, 6).map(({ name }) => name)).toEqual(['c65', 'c66', 'c67', 'c68', 'c69', 'c00'])
    expect(said).toMatchObject({ resourcesCollected: 65, clustersCollected: 65, errorsLastRun: 5 })
  })

  it('waits for the first collection by the revision in force', () => {
    const said = sourceStatus(facts({ collected: collected({ east: { rows: 2 } }, 'another') }))
    expect(conditionOf(said, 'Collected')).toMatchObject({ status: 'Unknown', reason: 'Pending' })
    expect(said).toMatchObject({ phase: 'Pending', resourcesCollected: 2 })
  })

  it.each<[RowsState['outcome'], string]>([
    ['forbidden', 'Error'],
    ['absent', 'Error'],
    ['unreachable', 'Error'],
    ['complete', 'Active'],
  ])('goes by what a cluster said last: %s of a revision whose forerunner left rows is %s', (outcome, phase) => {
    const rows = { ...aRowsState(ID, { rows: 3, hash: 'before', at: NOW }), outcome }
    const state = outcome === 'complete' ? { ...rows, hash: 'h' } : { ...rows, failedHash: 'h' }
    const told = collectedOf(ID, [aCluster('east', new Map([[ID, state]]))], 'h')
    expect(sourceStatus(facts({ collected: told })).phase).toBe(phase)
  })

  it('keeps what is stored of collections while state is being loaded', () => {
    const stored = sourceStatus(facts({ collected: collected({ east: { rows: 7 } }) }))
    const said = sourceStatus(facts({ stored, collected: undefined }))
    expect(said).toMatchObject({ resourcesCollected: 7, message: 'Collection successful' })
    expect(said.clusters).toEqual(stored.clusters)
    expect(conditionOf(said, 'Collected')).toEqual(conditionOf(stored, 'Collected'))
  })

  it('is the same while state is being loaded, at each start and at each look', () => {
    const findings = [{ severity: 'warning' as const, code: 'w', path: 'spec.rbac', message: 'odd' }]
    const stored = sourceStatus(facts({ findings, collected: collected({ east: { rows: 7 } }) }))
    expect(stored.message).toBe('Collection successful; 1 warning: spec.rbac: odd')
    const said = sourceStatus(facts({ findings, stored, collected: undefined }))
    expect(said).toEqual(stored)
    expect(sourceStatus(facts({ findings, stored: said, collected: undefined }))).toEqual(stored)
  })

  it.each<[string, Partial<StatusFacts>]>([
    ['of a revision before', { generation: 0, inForce: { generation: 0 } }],
    ['of a store that was away', { storeTrouble: 'no answer' }],
    ['of faults', { findings: [{ severity: 'error', code: 'e', path: 'spec', message: 'bad' }] }],
  ])('while state is being loaded repeats nothing that was said %s', (_, before) => {
    const stored = sourceStatus(facts({ collected: collected({ east: { rows: 7 } }), ...before }))
    const said = sourceStatus(facts({ stored, collected: undefined }))
    expect(said).toMatchObject({ phase: 'Pending', message: 'Waiting for the state of the clusters' })
    expect(conditionOf(said, 'Ready')).toMatchObject({ status: 'Unknown', reason: 'Pending' })
    expect(said.resourcesCollected).toBe(7)
  })

  it('is written once: said again over itself there is nothing to write', () => {
    const anyReported = fc.record(
      {
        rows: fc.nat(5),
        hash: fc.constantFrom('h', 'other'),
        outcome: fc.constantFrom('complete' as const, 'absent' as const, 'forbidden' as const, 'unreachable' as const),
        code: fc.constantFrom('a', 'b'),
        message: fc.string(),
        truncated: fc.boolean(),
        reports: fc.constantFrom<readonly FieldReport[]>([], [report('phase', 1), report('capacity', 0, 1, 'x')]),
      },
      { requiredKeys: [] },
    )
    const told = fc.dictionary(fc.constantFrom('a', 'b', 'c', 'd'), fc.option(anyReported, { nil: undefined }))
    fc.assert(
      fc.property(told, fc.boolean(), fc.boolean(), (clusters, isFaulty, isLoaded) => {
        const findings = isFaulty
          ? [{ severity: 'error' as const, code: 'e', path: 'spec.fields[0].path', message: 'bad' }]
          : []
        const over = { findings, collected: isLoaded ? collected(clusters) : undefined }
        const said = sourceStatus(facts(over))
        // As it comes back from the API: without what JSON cannot say.
        const stored = JSON.parse(JSON.stringify(said)) as MetricSourceStatus
        expect(statusPatch(stored, sourceStatus(facts({ ...over, stored, now: NOW + 60_000 })))).toBeUndefined()
        expect(saysTheSame(stored, said)).toBe(true)
      }),
    )
  })

  it('says the same while only counts and times move, and something new otherwise', () => {
    const stored = sourceStatus(facts({ collected: collected({ east: { rows: 2 } }) }))
    const later = (told: ReportedSource) =>
      sourceStatus(facts({ stored, collected: collected({ east: { at: NOW + 9_000, ...told } }) }))
    expect(saysTheSame(stored, later({ rows: 3, durationMs: 900 }))).toBe(true)
    expect(saysTheSame(stored, later({ rows: 3, truncated: true }))).toBe(false)
    expect(saysTheSame(stored, later({ outcome: 'forbidden', code: 'c', message: 'm' }))).toBe(false)
    expect(saysTheSame(stored, later({ rows: 1, reports: [report('phase', 0, 1)] }))).toBe(false)
    expect(saysTheSame(undefined, stored)).toBe(false)
  })

  it('drops the note of a taken type name when it is not taken any more', () => {
    const stored = sourceStatus(facts({ typeNameOf: { typeName: 'pvc', source: 'clusterpulse/a' } }))
    expect(conditionOf(stored, 'TypeNameTaken')?.status).toBe('True')
    expect(conditionOf(sourceStatus(facts({ stored })), 'TypeNameTaken')).toBeUndefined()
  })
})

describe('fieldValidation', () => {
  const spec = aSpec()
  const of = (rows: number, ...reports: FieldReport[]) =>
    fieldValidation(spec, [], collected({ a: { rows, reports }, b: { rows, reports } }).reports)[1]

  it('says how often a field was read, over all clusters', () => {
    expect(of(10, report('capacity', 1))).toEqual({
      ...{ field: 'capacity', status: 'valid', message: 'read in 18 of 20 objects' },
    })
    expect(of(10, report('capacity', 10))).toMatchObject({ status: 'warning', message: 'nothing in any of 20 objects' })
    expect(of(10, report('capacity', 1, 2, 'ten'))).toMatchObject({
      ...{ status: 'warning', message: 'no bytes in 4 of 20 objects, such as "ten"; nothing in 2' },
    })
    expect(of(10, report('capacity', 0, 10, 'ten'))).toMatchObject({
      ...{ status: 'invalid', message: 'no bytes in any of 20 objects, such as "ten"' },
    })
    expect(of(0, report('capacity', 0))).toEqual({ field: 'capacity', status: 'valid' })
    expect(of(3)).toEqual({ field: 'capacity', status: 'valid' })
  })

  it('says of a field what the compiler found, and counts nothing that another revision read', () => {
    const found = fieldValidation(
      spec,
      [
        { severity: 'error', code: 'e', path: 'spec.computed[0].expression', message: 'bad' },
        { severity: 'warning', code: 'w', path: 'spec.fields[0].path', message: 'odd' },
        { severity: 'warning', code: 'w', path: 'spec.fields[10].path', message: 'of nothing' },
      ],
      collected({ a: { rows: 5, hash: 'old', reports: [report('capacity', 5)] } }).reports,
    )
    expect(found).toEqual([
      { field: 'phase', status: 'warning', message: 'spec.fields[0].path: odd' },
      { field: 'capacity', status: 'valid' },
      { field: 'capacityGiB', status: 'invalid', message: 'spec.computed[0].expression: bad' },
    ])
  })
})

it.each([
  [0, '0s'],
  [0.4, '0s'],
  [500, '500ms'],
  [1_000, '1s'],
  [1_234, '1.234s'],
  [61_500, '1m1.5s'],
  [3_601_000, '1h0m1s'],
  [3_600_000, '1h0m0s'],
  [-5, '0s'],
])('prints %d ms as Go does: %s', (ms, text) => expect(goDuration(ms)).toBe(text))
