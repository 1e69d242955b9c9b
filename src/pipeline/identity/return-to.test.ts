import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { localPath } from './return-to.ts'

describe('the page to come back to', () => {
  it.each(['/', '/clusters/east?tab=nodes#top', '/a%2Fb', '/apis', '/search?q=https://x.example'])(
    'may be %s',
    (path) => {
      expect(localPath(path)).toBe(path)
    },
  )

  it.each([
    'https://evil.example',
    '//evil.example',
    '///evil.example',
    '/\\evil.example',
    '\\\\evil.example',
    '/\t/evil.example',
    '/\n/evil.example',
    '/.//evil.example',
    '/a/..//evil.example',
    '/%09/evil.example/../..//evil.example',
    'javascript:alert(1)',
    'clusters',
    '/api',
    '/api/v1/auth/login',
    '/a/../api/v1/auth/logout',
    '/API/v1/auth/login',
    `/${'a'.repeat(2000)}`,
    '/a\u202eb',
  ])('is the start page instead of %j', (path) => {
    expect(localPath(path)).toBe('/')
  })

  it('is on this site, whatever is asked for', () => {
    const pieces = fc.constantFrom(
      '/',
      '\\',
      '.',
      '..',
      ':',
      '@',
      '?',
      '#',
      '%2f',
      '\t',
      'http:',
      'evil.example',
      'api',
      'a',
    )
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 12 }), (parts) => {
        const path = localPath(parts.join(''))
        const target = new URL(path, 'https://pulse.example/api/v1/auth/callback')
        expect(target.origin).toBe('https://pulse.example')
        expect(target.pathname.startsWith('/api/')).toBe(false)
        // And a browser that reads it once more arrives at the same place.
        expect(localPath(path)).toBe(path)
      }),
      { numRuns: 2000 },
    )
  })
})
