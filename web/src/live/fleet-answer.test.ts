import { describe, expect, it } from 'vitest'
import { pvcSource as source } from '../../testing/customs.ts'
import type { FleetPageView } from '../contract.ts'
import { fleetAnswer, packedFleetAnswer } from './fleet-answer.ts'
import { RowList } from './row-list.ts'

const view: FleetPageView = {
  items: ['west', 'east'].map((cluster) => ({
    ...{ id: 'shop/a', cluster, namespace: 'shop', name: 'a', labels: {} },
    values: Object.fromEntries(source.columns.map(({ name }) => [name, `${name} of ${cluster}`])),
  })),
  ...{ total: 2, next: null, source, clusters: [] },
}

describe('an answer about rows over clusters', () => {
  const bytes = (text: string) => new TextEncoder().encode(text).buffer

  it('says the same packed, and counts the same', () => {
    const { answer } = packedFleetAnswer(bytes(JSON.stringify(view)))
    const plain = fleetAnswer(view)
    const [packed, list] = [answer.items, plain.items].map((items) => {
      const built = RowList.builder({ counted: ['storageClass'], unpacked: 1 })
      built.add(items)
      return built.build()
    })
    expect([...(packed ?? [])]).toEqual([...(list ?? [])])
    expect([...(packed ?? new Map()).keys()]).toEqual(['west/shop/a', 'east/shop/a'])
    expect(packed?.countBy('storageClass')).toEqual({ 'storageClass of west': 1, 'storageClass of east': 1 })
    expect({ ...answer, items: [] }).toEqual({ ...plain, items: [] })
  })

  it('is none where it is no JSON', () => expect(() => packedFleetAnswer(bytes('<html>'))).toThrow())
})
