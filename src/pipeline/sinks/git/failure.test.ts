import { expect, it } from 'vitest'
import { gitFailure } from './failure.ts'

it('tells of a full disk of the agent without its places', () => {
  const said = 'error: unable to create temporary file: No space left on device\nfatal: /data/buf/sinks/git/a1: cannot'
  const { errorClass, message } = gitFailure(said, { host: 'git.test', port: 443 }, [])
  expect(errorClass).toBe('transient')
  expect(message).toContain('the disk of the agent is full')
  expect(message).not.toContain('/data')
})

it('tells a full disk of the repository from one of the agent', () => {
  const said = `remote: fatal: unable to write loose object file: No space left on device
error: remote unpack failed: unpack-objects abnormal exit
 ! [remote rejected] HEAD -> main (unpacker error)`
  const { errorClass, message } = gitFailure(said, { host: 'git.test', port: 443 }, [])
  expect([errorClass, message]).toEqual(['transient', expect.stringContaining('the disk that the repository is on')])
  expect(message).not.toContain('agent')
})

it.each([
  "SSL: certificate subject name (git.test) does not match target host name 's3.test'",
  "SSL: certificate subject name (git.test) does not match target hostname 's3.test'",
  "SSL: no alternative certificate subject name matches target host name 's3.test'",
])('tells a certificate of another name from one that is not trusted: %s', (words) => {
  const said = `fatal: unable to access 'https://s3.test/inv.git/': ${words}`
  const { errorClass, message } = gitFailure(said, { host: 's3.test', port: 443 }, [])
  expect(errorClass).toBe('terminal')
  expect(message).toContain('is for another name')
})

it.each([
  [404, 'terminal', 'no such repository'],
  [429, 'transient', 'fewer requests'],
] as const)('an answer %d is %s', (status, errorClass, words) => {
  const said = `fatal: unable to access 'https://git.test/inv.git/': The requested URL returned error: ${status}`
  expect(gitFailure(said, { host: 'git.test', port: 443 }, [])).toMatchObject({
    errorClass,
    message: expect.stringContaining(words),
  })
})
