import { describe, expect, it } from 'vitest'
import { type SinkExport, sinkExports } from './sink-exports.ts'

const said = (inventory: string, reason: string, more: Partial<SinkExport> = {}): SinkExport => ({
  inventory,
  name: 'database/warehouse',
  conditions: [
    {
      type: 'Synced',
      status: ['Exported', 'UpToDate'].includes(reason) ? 'True' : 'False',
      ...{ reason, message: `it is ${reason}`, lastTransitionTime: '2026-11-01T00:00:00Z' },
    },
  ],
  ...more,
})

describe('what inventories say of a sink', () => {
  it('is added up: rows, the latest export, the oldest change that it lacks', () => {
    const { counts, synced } = sinkExports([
      said('shop/apps', 'Exported', { itemCount: 3, lastExportTime: '2026-11-02T00:00:00Z' }),
      said('bank/apps', 'UpToDate', {
        ...{ itemCount: 4, lastExportTime: '2026-11-01T00:00:00Z', behindSince: '2026-11-03T00:00:00Z' },
      }),
      said('all', 'Exported', { behindSince: '2026-11-02T12:00:00Z' }),
    ])
    expect(counts).toEqual({
      ...{ inventories: 3, itemCount: 7 },
      ...{ lastExportTime: '2026-11-02T00:00:00Z', behindSince: '2026-11-02T12:00:00Z' },
    })
    expect(synced).toMatchObject({ status: 'True', reason: 'Exported' })
  })

  it.each([
    [['Exported', 'Pending'], 'Pending', 'two: it is Pending'],
    [['Pending', 'Transient', 'DeletionsWait'], 'Transient', 'two: it is Transient'],
    [['Transient', 'Transient', 'Exported'], 'Transient', 'one: it is Transient; two: it is Transient'],
    [['SinkNotFound', 'Pending'], 'SinkNotFound', 'one: it is SinkNotFound'],
    [['Terminal', 'WriterConflict'], 'WriterConflict', 'two: it is WriterConflict'],
  ])('of %j is the worst, in the words of all that say so', (reasons, reason, message) => {
    const names = ['one', 'two', 'three']
    const { synced } = sinkExports(reasons.map((one, at) => said(names[at] ?? '', one)))
    expect(synced).toEqual({ type: 'Synced', status: 'False', reason, message })
  })

  it('is nothing where none is written there, and waits where nothing was said yet', () => {
    expect(sinkExports([])).toEqual({ counts: { inventories: 0 } })
    expect(sinkExports([{ inventory: 'one', name: 'event/nats', conditions: [] }]).synced).toMatchObject({
      ...{ status: 'False', reason: 'Pending' },
    })
  })
})
