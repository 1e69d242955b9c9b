import { expect, it } from 'vitest'
import { inventoryStatus } from './inventory-status.ts'

const now = Date.parse('2026-11-02T12:00:00Z')
const facts = { generation: 1, isSuspended: false, bindings: [] }

it.each([
  ['keeps when it was exported last, over a restart', '2026-11-02T11:00:00Z', '2026-11-02T11:00:00Z'],
  ['does not go on with a time to come, which a wrong clock wrote', '2026-11-02T13:00:00Z', undefined],
])('%s', (_, lastExportTime, wanted) => {
  expect(inventoryStatus({ lastExportTime }, facts, now).lastExportTime).toBe(wanted)
})
