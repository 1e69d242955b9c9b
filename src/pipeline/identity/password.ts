import { createHash, createHmac, randomBytes, scrypt, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'
import type { Principal } from '#access'
import type { Clock } from '#model'
import { networkOf } from '#runtime'
import { SignInFailedError, SignInThrottledError, UnsafeConfigurationError } from './errors.ts'
import { cleanName } from './names.ts'
import { Throttle } from './throttle.ts'

const hashed = promisify<string, Buffer, number, Buffer>(scrypt)
const minLength = 12
/** Each hash takes 16 MiB and some 50 ms: more at once would be a way to stop us. */
const maxAtOnce = 4

/** One administrator with a password. */
export interface PasswordWay {
  /** changes with the name and the password: sessions that stand on an older one end */
  readonly basis: string
  /**
   * @param address of the client, for throttling
   * @throws SignInFailedError, SignInThrottledError
   */
  signIn(name: string, password: string, address: string): Promise<Principal>
}

export function passwordWay(config: { readonly username: string; readonly secret: string }, clock: Clock): PasswordWay {
  if (config.secret.length < minLength)
    throw new UnsafeConfigurationError(`LOCAL_ADMIN_PASSWORD needs at least ${minLength} characters`)
  if (!cleanName(config.username)) throw new UnsafeConfigurationError('LOCAL_ADMIN_USER is no plain name')
  const salt = randomBytes(16)
  const expected = hashed(config.secret, salt, 32)
  const names = new Throttle(clock)
  const addresses = new Throttle(clock)
  let running = 0

  const matches = async (name: string, password: string): Promise<boolean> => {
    // The password of a wrong name is hashed as well: time does not tell which of them was wrong.
    const given = await hashed(password, salt, 32)
    const right = timingSafeEqual(given, await expected)
    return sameText(name, config.username) && right
  }

  return {
    basis: createHmac('sha256', config.secret).update(`password ${config.username}`).digest('base64url').slice(0, 22),
    async signIn(name, password, address) {
      const nameKey = createHash('sha256').update(name).digest('base64url')
      const addressKey = networkOf(address)
      const wait = Math.max(names.delayMs(nameKey), addresses.delayMs(addressKey))
      if (wait > 0) throw new SignInThrottledError(wait)
      if (running >= maxAtOnce) throw new SignInThrottledError(1000)
      names.begin(nameKey)
      addresses.begin(addressKey)
      running++
      try {
        if (!(await matches(name, password))) throw new SignInFailedError('name or password is wrong')
      } finally {
        running--
      }
      names.succeeded(nameKey)
      addresses.succeeded(addressKey)
      return { username: config.username, email: '', groups: [], isServiceAccount: false, method: 'password' }
    },
  }
}

const digest = (text: string): Buffer => createHash('sha256').update(text).digest()
const sameText = (a: string, b: string): boolean => timingSafeEqual(digest(a), digest(b))
