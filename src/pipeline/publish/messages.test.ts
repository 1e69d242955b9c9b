import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { chunkMapped, parseClusterName } from '#model'
import { type EventHead, metricsParts, podParts } from './messages.ts'
import { type ContainerWords, podRows } from './testing/clusters.ts'
import { readEvent } from './testing/events.ts'

const cluster = parseClusterName('eu.west-1')
let ids = 0
const head = (maxBytes = 512 * 1024): EventHead => ({
  cluster,
  at: 1_700_000_000_999,
  eventId: () => `id-${String(++ids).padStart(9, '0')}`,
  maxBytes,
})
const all = () => true

const text = fc.stringMatching(/^[a-z0-9][-a-z0-9]{0,30}$/)
const container: fc.Arbitrary<ContainerWords> = fc.tuple(text, fc.nat(), fc.boolean())
const pods = fc.dictionary(
  fc.tuple(text, text).map(([namespace, name]) => `${namespace}/${name}`),
  fc.option(fc.array(container, { minLength: 1, maxLength: 4 })),
  { maxKeys: 60 },
)

describe('a message', () => {
  it('of pods is read by others as it was told, in parts that are messages by themselves', () =>
    fc.assert(
      fc.property(pods, fc.integer({ min: 100, max: 2000 }), (words, maxBytes) => {
        const rows = podRows(words)
        const told = [...rows.rows()].flatMap(({ namespace, name }) =>
          (words[`${namespace}/${name}`] ?? []).map(([container, restart_count, oom_killed]) => ({
            ...{ name, namespace, restart_count, oom_killed, container },
          })),
        )
        const parts = podParts(rows, all, head(maxBytes))
        const seen = parts.map(({ bytes }) => readEvent('pods', bytes))
        expect(seen.flatMap((event) => event.pods)).toEqual(told)
        for (const [i, { bytes, eventId }] of parts.entries()) {
          const { metadata, pods: entries } = seen[i]!
          expect(metadata).toMatchObject({ event_id: eventId, entity_id: 'eu.west-1', source: 'cluster-monitor' })
          expect(metadata.timestamp.seconds).toBe(1_700_000_000)
          // One entry that is larger is a part all the same.
          expect(bytes.length <= maxBytes || entries?.length === 1).toBe(true)
        }
        expect(new Set(parts.map(({ eventId }) => eventId)).size).toBe(parts.length)
      }),
    ))

  it('of nodes is read by others as it was told', () =>
    fc.assert(
      fc.property(
        fc.array(
          fc.record({
            name: text,
            cpu_percent: fc.double({ noNaN: true }),
            memory_percent: fc.double({ min: 0, max: 400, noNaN: true }),
            disk_percent: fc.constantFrom(0, 25),
            conditions: fc.array(fc.record({ type: text, status: text }), { maxLength: 4 }),
          }),
        ),
        (nodes) => {
          const parts = metricsParts(nodes, head(1000))
          expect(parts.flatMap(({ bytes }) => readEvent('metrics', bytes).nodes ?? [])).toEqual(
            nodes.map((node) => ({ ...node, cpu_percent: node.cpu_percent + 0 })),
          )
        },
      ),
    ))

  it('is there where nothing is to be listed', () => {
    expect(podParts(podRows({}), all, head())).toHaveLength(1)
    expect(readEvent('pods', podParts(podRows({}), all, head())[0]!.bytes)).toMatchObject({ pods: [] })
    expect(readEvent('metrics', metricsParts([], head())[0]!.bytes)).toMatchObject({ nodes: [] })
  })

  it('tells of the wanted namespaces alone', () => {
    const rows = podRows({ 'core/a': [['c', 1, false]], 'other/a': [['c', 2, false]] })
    const [part] = podParts(rows, (namespace) => namespace === 'core', head())
    expect(readEvent('pods', part!.bytes).pods).toEqual([
      { name: 'a', namespace: 'core', restart_count: 1, oom_killed: false, container: 'c' },
    ])
  })

  it('of 20,000 pods of two containers has parts of at most 512 KiB', () => {
    const words = Object.fromEntries(
      Array.from({ length: 20_000 }, (_, i) => {
        const containers: readonly ContainerWords[] = [
          ['web', i % 7, i % 11 === 0],
          ['proxy', 0, false],
        ]
        return [`team-${i % 50}/web-6f9c8d7b5-${i}`, containers] as const
      }),
    )
    const parts = podParts(podRows(words), all, head())
    expect(parts.length).toBeGreaterThan(2)
    expect(Math.max(...parts.map(({ bytes }) => bytes.length))).toBeLessThanOrEqual(512 * 1024)
    expect(parts.reduce((sum, { bytes }) => sum + readEvent('pods', bytes).pods!.length, 0)).toBe(40_000)
  })

  it('leaves out what a column holds that is nothing of the sort', () => {
    const rows = podRows({ 'a/a': [['c', -1, false]], 'a/b': [['c', 2 ** 40, false]], 'a/c': [['c', 0.5, true]] })
    const odd = rows.mapChunks((chunk) =>
      chunkMapped(chunk, rows.fields.indexOf('containerRestarts'), (value) =>
        String(value).includes('0.5') ? '{' : value,
      ),
    )
    const [part] = podParts(odd, all, head())
    expect(readEvent('pods', part!.bytes).pods).toMatchObject([{ restart_count: 0 }, { restart_count: 2 ** 31 - 1 }])
  })
})
