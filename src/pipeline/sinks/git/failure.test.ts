import { expect, it } from 'vitest'
import { gitFailure } from './failure.ts'

it('tells of a full disk of the agent without its places', () => {
  const said = 'error: unable to create temporary file: No space left on device\nfatal: /data/buf/sinks/git/a1: cannot'
  const { errorClass, message } = gitFailure(said, { host: 'git.test', port: 443 }, [])
  expect(errorClass).toBe('transient')
  expect(message).toContain('the disk of the agent is full')
  expect(message).not.toContain('/data')
})
