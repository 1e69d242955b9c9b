import { describe, expect, it } from 'vitest'
import { sinkHostProblem } from './index.ts'

const closed = { allowLoopback: false, allowPrivate: false }
const open = { allowLoopback: true, allowPrivate: true }

describe('a host of a sink', () => {
  it.each(['8.8.8.8', '[2606:4700::1111]', 'db.example.com', 'postgres.db.svc'])('%s may be sent to', (host) =>
    expect(sinkHostProblem(host, closed)).toBeUndefined(),
  )

  it.each(['127.0.0.1', '[::1]', 'localhost', 'LOCALHOST.', 'a.localhost', '[::ffff:127.0.0.1]'])(
    '%s is the machine itself: only a setting of the process opens it',
    (host) => {
      expect(sinkHostProblem(host, closed)).toContain('SINK_ALLOW_LOOPBACK')
      expect(sinkHostProblem(host, { ...closed, allowPrivate: true })).toContain('SINK_ALLOW_LOOPBACK')
      expect(sinkHostProblem(host, { ...closed, allowLoopback: true })).toBeUndefined()
    },
  )

  it.each(['10.0.0.1', '172.16.0.1', '192.168.1.1', '[fd12:3456::1]'])(
    '%s is private: another setting opens it',
    (host) => {
      expect(sinkHostProblem(host, { ...closed, allowLoopback: true })).toContain('SINK_ALLOW_PRIVATE')
      expect(sinkHostProblem(host, { ...closed, allowPrivate: true })).toBeUndefined()
    },
  )

  it.each([
    ...[
      '169.254.169.254',
      '[fd00:ec2::254]',
      '[::ffff:a9fe:a9fe]',
      'metadata.google.internal',
      'Metadata.Google.Internal.',
    ],
    ...['169.254.0.1', '[fe80::1]', '0.0.0.0', '[::]', '224.0.0.1', '100.64.0.1', '198.18.0.1'],
  ])('%s stays closed under every setting', (host) =>
    expect(sinkHostProblem(host, open)).toContain('no setting opens it'),
  )
})
