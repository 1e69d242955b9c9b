import { describe, expect, it } from 'vitest'
import { SinkError } from '../sink.ts'
import { parseRemote } from './remote.ts'

describe('an endpoint of git', () => {
  it.each([
    ['https://git.example.com/team/a.git', 'https', 'git.example.com', 443, 'https://git.example.com/team/a.git'],
    [
      'https://me:secret@git.example.com:8443/a.git',
      'https',
      'git.example.com',
      8443,
      'https://git.example.com:8443/a.git',
    ],
    ['ssh://me:secret@git.example.com/a.git', 'ssh', 'git.example.com', 22, 'ssh://me@git.example.com/a.git'],
    ['ssh://[2606:4700::1111]:2222/a.git', 'ssh', '[2606:4700::1111]', 2222, 'ssh://git@[2606:4700::1111]:2222/a.git'],
    ['git@git.example.com:team/a.git', 'ssh', 'git.example.com', 22, 'git@git.example.com:team/a.git'],
    ['git.example.com:team/a.git', 'ssh', 'git.example.com', 22, 'git@git.example.com:team/a.git'],
    ['file:///srv/a.git', 'file', '', 0, 'file:///srv/a.git'],
  ])('%s is taken apart, and loses its password', (text, scheme, host, port, url) =>
    expect(parseRemote(text, undefined)).toMatchObject({ scheme, host, port, url, branch: 'main' }),
  )

  it('names the branch, unless the sink does', () => {
    expect(parseRemote('https://git.test/a.git#branch=west', undefined)).toMatchObject({
      branch: 'west',
      url: 'https://git.test/a.git',
    })
    expect(parseRemote('https://git.test/a.git#branch=west', 'east').branch).toBe('east')
    expect(parseRemote('git@git.test:a.git#branch=west', undefined)).toMatchObject({
      branch: 'west',
      url: 'git@git.test:a.git',
    })
  })

  it.each([
    '',
    'ext::sh -c id',
    'https://',
    '--upload-pack=x',
    '-oProxyCommand=id:a.git',
    'ssh://-oProxyCommand=id/a.git',
    'ftp://git.test/a',
  ])('is refused: %j', (text) => expect(() => parseRemote(text, undefined)).toThrow(SinkError))
  it.each(['-x', 'a..b', 'a:b', '+main', 'main.lock', ''])('refuses the branch %j', (branch) =>
    expect(() => parseRemote('https://git.test/a.git', branch)).toThrow(SinkError),
  )
})
