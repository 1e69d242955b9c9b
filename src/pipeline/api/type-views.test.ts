import { expect, it } from 'vitest'
import { neverRead } from './type-views.ts'
import type { VisibleType } from './visible-types.ts'

const typeOf = (access: string, mode: string) =>
  ({ source: { access }, cluster: { connection: { mode } } }) as unknown as VisibleType

it.each([
  ['pods', 'pull', 'unreachable', /collected so far/],
  ['named', 'push', 'unreachable', /collected so far/],
  ['named', 'pull', 'absent', /takes an agent/],
])('rows of %s in a cluster of mode %s that were never read are %s', (access, mode, outcome, message) => {
  expect(neverRead(typeOf(access, mode))).toMatchObject({ outcome, message: expect.stringMatching(message) })
})
