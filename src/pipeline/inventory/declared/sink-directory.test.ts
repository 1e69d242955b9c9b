import { expect, it } from 'vitest'
import { minutes, seconds } from '#model'
import type { FoundSink } from '../bindings/plan.ts'
import { SinkDirectory } from './sink-directory.ts'

it('knows for a while how a sink was written to that went, or whose Secret went first, for cleaning up alone', () => {
  let now = 0
  const directory = new SinkDirectory(() => now)
  const place = { family: 'database', namespace: 'shop', name: 'warehouse' } as const
  const ready = { kind: 'ready', sink: { identity: 'a' } } as unknown as FoundSink // nobody looks at the rest
  const blocked: FoundSink = {
    kind: 'blocked',
    blocked: { reason: 'SecretNotFound', message: 'there is no Secret', errorClass: 'terminal' },
  }
  const set = (found: FoundSink) => directory.set(place, { found, secrets: new Map() })
  expect(directory.forCleaning(place)).toBeUndefined()
  set(blocked)
  expect(directory.forCleaning(place)).toBe(blocked)
  set(ready)
  now += minutes(60)
  expect(directory.forCleaning(place)).toBe(ready)
  set(blocked)
  expect([directory.get(place), directory.forCleaning(place)]).toEqual([blocked, ready])
  now += minutes(5)
  directory.delete(place)
  expect([directory.get(place), directory.forCleaning(place)]).toEqual([undefined, ready])
  now += minutes(5) + seconds(1)
  expect(directory.forCleaning(place)).toBeUndefined()
})
