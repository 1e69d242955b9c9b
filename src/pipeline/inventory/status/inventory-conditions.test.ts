import { expect, it } from 'vitest'
import type { BindingView } from '../bindings/view.ts'
import { inventoryConditions } from './inventory-conditions.ts'

const view = (name: string, more: Partial<BindingView>): BindingView => ({
  ...{ name: `database/${name}`, family: 'database', namespace: 'shop', state: 'failing', reason: 'ExportFailed' },
  message: 'why',
  ...more,
})
const taken = view('taken', { state: 'exported', reason: 'Exported' })
const away = view('away', { errorClass: 'transient', reason: 'Progressing' })
const refusing = view('refusing', { errorClass: 'forbidden', reason: 'ExportForbidden' })
const tooLarge = view('large', { errorClass: 'terminal', reason: 'ExportTerminal' })
const missing = view('missing', { state: 'blocked', errorClass: 'terminal', reason: 'SinkNotFound' })
const same = view('same', { state: 'current', reason: 'UpToDate' })
const first = view('first', { state: 'pending', reason: 'Pending' })

it('is not in step with a sink that does not keep what it takes', () => {
  const unkept = view('short', { state: 'exported', reason: 'WrittenAgain', message: 'the sink was without it' })
  const conditions = inventoryConditions({ isSuspended: false, bindings: [taken, unkept] }, 0)
  const said = Object.fromEntries(
    conditions.map(({ type, status, reason, message }) => [type, [status, reason, message]]),
  )
  expect(said).toMatchObject({
    Ready: ['True', 'WrittenAgain', 'database/short: the sink was without it'],
    Synced: ['False', 'WrittenAgain', 'database/short: the sink was without it'],
    Degraded: ['False', 'WrittenAgain', expect.any(String)],
  })
})

it.each<[string, readonly BindingView[], string]>([
  ['all took it', [taken], 'True/Exported'],
  ['one is away, whatever the others say', [taken, tooLarge, refusing, away], 'False/SinkUnreachable'],
  ['one refused', [taken, refusing], 'True/ExportForbidden'],
  ['what it should hold was never sent', [taken, refusing, tooLarge], 'Unknown/ExportTerminal'],
  ['there is none', [missing], 'Unknown/SinkNotFound'],
  ['none was asked since the start', [same], 'Unknown/UpToDate'],
  ['none has answered yet', [first], 'Unknown/Progressing'],
  ['one has not answered yet, and the others were not asked', [same, first], 'Unknown/Progressing'],
])('says whether sinks were reached where %s', (_, bindings, wanted) => {
  const conditions = inventoryConditions({ isSuspended: false, bindings }, 0)
  const { status, reason } = conditions.find(({ type }) => type === 'SinkReachable') ?? {}
  expect(`${status}/${reason}`).toBe(wanted)
})
