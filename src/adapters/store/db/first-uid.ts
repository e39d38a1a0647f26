/** Sorts before every uid: a page that begins after it is the first one. */
export const FIRST_UID = "00000000-0000-0000-0000-000000000000";
