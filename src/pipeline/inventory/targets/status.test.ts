import { expect, it } from 'vitest'
import type { TargetState } from './engine.ts'
import { statusOf } from './status.ts'

it('is not in sync where all of what it reads is forbidden, and is where a part of it is', () => {
  const state = { generation: 1, since: 0, matchedNamespaces: [], effectiveNamespaces: [], activeRules: 0, failures: 0 }
  const said = (type: string, more: Partial<TargetState>) =>
    statusOf(
      { ...state, isComplete: false, isReading: false, forbidden: 'it may not be listed', ...more },
      {},
      {
        ...{ isOfCluster: false, now: 0 },
      },
    ).conditions?.find((one) => one.type === type)
  const synced = (more: Partial<TargetState>) => said('Synced', more)
  expect(synced({})).toMatchObject({ status: 'True', reason: 'ScopeForbidden' })
  expect(synced({ isBlind: true })).toMatchObject({
    status: 'False',
    reason: 'ScopeForbidden',
    message: 'it may not be listed',
  })
  expect(said('Ready', { rows: 3 })?.message).toBe('collecting 3 resource(s); not all of them')
  const blind = 'nothing of what it reads may be listed: '
  expect(said('Ready', { isBlind: true, rows: 501 })?.message).toBe(
    `${blind}the 501 resource(s) collected before are kept`,
  )
  // As after a start, when nothing was read yet.
  expect(said('Ready', { isBlind: true })?.message).toBe(`${blind}what was collected before is kept`)
})
