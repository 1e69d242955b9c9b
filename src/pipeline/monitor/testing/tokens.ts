import { SignJWT } from 'jose'

export const SECRET = 'a secret that monitor and auth service share'

/** A token as the auth service signs it. */
export function signed(
  claims: Readonly<Record<string, unknown>>,
  { secret = SECRET, alg = 'HS256' } = {},
): Promise<string> {
  return new SignJWT({ ...claims }).setProtectedHeader({ alg }).sign(new TextEncoder().encode(secret))
}

export const admin = (more = {}) => signed({ user_id: 'Root01', username: 'root', is_admin: true, type: '', ...more })
export const user = (userId: string, more = {}) => signed({ user_id: userId, username: userId, ...more })
