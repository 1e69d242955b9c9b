import { expect, it } from 'vitest'
import { gitFailure } from './failure.ts'

const HTTPS = { scheme: 'https', host: 'git.test', port: 443, url: 'https://git.test/inv.git' } as const
const FILE = { scheme: 'file', host: '', port: 0, url: 'file:///srv/git/our%20inv.git' } as const
const SSH = { scheme: 'ssh', host: 'git.test', port: 22, url: 'git@git.test:inv.git' } as const

it('tells of a full disk of the agent without its places', () => {
  const said = 'error: unable to create temporary file: No space left on device\nfatal: /data/buf/sinks/git/a1: cannot'
  const { errorClass, message } = gitFailure(said, HTTPS, [])
  expect(errorClass).toBe('transient')
  expect(message).toContain('the disk of the agent is full')
  expect(message).not.toContain('/data')
})

it('tells a full disk of the repository from one of the agent', () => {
  const said = `remote: fatal: unable to write loose object file: No space left on device
error: remote unpack failed: unpack-objects abnormal exit
 ! [remote rejected] HEAD -> main (unpacker error)`
  const { errorClass, message } = gitFailure(said, HTTPS, [])
  expect([errorClass, message]).toEqual(['transient', expect.stringContaining('the disk that the repository is on')])
  expect(message).not.toContain('agent')
})

it.each([
  // As git 2.39 pushes from a shallow repository into a full file system.
  [
    FILE,
    'fatal: failed to write to /srv/git/our inv.git/shallow_lz23DM: No space left on device',
    'the disk that the repository is on',
  ],
  [FILE, 'fatal: write error: No space left on device', 'that of the repository or that of the agent'],
  [
    SSH,
    'fatal: failed to write to /srv/git/inv.git/shallow_lz23DM: Disk quota exceeded',
    'that of the repository or that of the agent',
  ],
  [HTTPS, 'error: unable to create temporary file: No space left on device', 'the disk of the agent is full'],
  [
    HTTPS,
    "remote: error: cannot update ref 'refs/heads/main': couldn't write '/srv/inv.git/./refs/heads/main.lock'",
    'the repository cannot be written to',
  ],
  [
    FILE,
    'error: remote unpack failed: unable to create temporary object directory',
    'the repository cannot be written to',
  ],
] as const)('tells whose disk is full, or that it cannot tell: %o, %s', (remote, said, words) => {
  const { errorClass, message } = gitFailure(`${said}\nfatal: the remote end hung up unexpectedly`, remote, [])
  expect([errorClass, message]).toEqual(['transient', expect.stringContaining(words)])
  if (!said.startsWith('remote: ')) expect(message).not.toContain('/srv')
})

it.each([
  "SSL: certificate subject name (git.test) does not match target host name 's3.test'",
  "SSL: certificate subject name (git.test) does not match target hostname 's3.test'",
  "SSL: no alternative certificate subject name matches target host name 's3.test'",
])('tells a certificate of another name from one that is not trusted: %s', (words) => {
  const said = `fatal: unable to access 'https://s3.test/inv.git/': ${words}`
  const { errorClass, message } = gitFailure(said, { ...HTTPS, host: 's3.test' }, [])
  expect(errorClass).toBe('terminal')
  expect(message).toContain('is for another name')
})

it.each([
  [404, 'terminal', 'no such repository'],
  [429, 'transient', 'fewer requests'],
] as const)('an answer %d is %s', (status, errorClass, words) => {
  const said = `fatal: unable to access 'https://git.test/inv.git/': The requested URL returned error: ${status}`
  expect(gitFailure(said, HTTPS, [])).toMatchObject({
    errorClass,
    message: expect.stringContaining(words),
  })
})
