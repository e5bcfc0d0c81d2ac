//! The keys that seal a `requestState`.

use std::fmt;
use std::sync::Arc;

use chacha20poly1305::aead::AeadInOut;
use chacha20poly1305::{KeyInit, XChaCha20Poly1305};

pub(super) const NONCE_LEN: usize = 24;
pub(super) const TAG_LEN: usize = 16;
pub(super) const KEY_ID_LEN: usize = 4;

/// The keys that seal and open the `requestState` of 2026-07-28, in which answers to earlier questions travel with the
/// client from one round of a request to the next.
///
/// Each transport makes one random key for itself, and needs nothing else while a single process serves all rounds of a
/// request. Where the next round may reach another node, or the same one restarted, all of them need the same keys. A
/// key is 32 random bytes, kept as secret as a signing key: who has it can forge what a client was never given.
///
/// To replace a key without refusing anybody, let every node accept the new one first, then seal with it, and drop the
/// old one once all states sealed with it have expired. A clone shares its keys.
///
/// ```
/// use mcp_transport::StateKeys;
///
/// # let (this_month, last_month) = ([1; 32], [2; 32]);
/// let keys = StateKeys::new(this_month).also_accepts(last_month);
/// ```
#[derive(Clone)]
pub struct StateKeys(Arc<Vec<Key>>);

impl StateKeys {
    /// One key that nobody else has. Where the operating system gives no random numbers there is none, nothing is
    /// sealed, and questions to clients of 2026-07-28 fail.
    pub fn random() -> Self {
        let mut key = [0; 32];
        let ring = getrandom::fill(&mut key).map(|()| Key::new(key));
        Self(Arc::new(ring.into_iter().collect()))
    }

    /// Seals and opens with this key.
    pub fn new(key: [u8; 32]) -> Self {
        Self(Arc::new(vec![Key::new(key)]))
    }

    /// Opens what was sealed with this key, too.
    #[must_use]
    pub fn also_accepts(mut self, key: [u8; 32]) -> Self {
        Arc::make_mut(&mut self.0).push(Key::new(key));
        self
    }

    /// The key that seals.
    pub(super) fn sealing(&self) -> Option<&Key> {
        self.0.first()
    }

    /// The keys of an id: most often one.
    pub(super) fn opening(&self, id: &[u8]) -> impl Iterator<Item = &Key> {
        self.0.iter().filter(move |key| key.id == id)
    }
}

/// Names no key.
impl fmt::Debug for StateKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StateKeys").field("count", &self.0.len()).finish_non_exhaustive()
    }
}

/// One key.
#[derive(Clone)]
pub(super) struct Key {
    /// What it is known by on all nodes. It says nothing of the key: it is what the cipher makes of zeros, under a
    /// nonce that nothing else is sealed with.
    pub(super) id: [u8; KEY_ID_LEN],
    cipher: XChaCha20Poly1305,
}

impl Key {
    fn new(key: [u8; 32]) -> Self {
        const NONCE: [u8; NONCE_LEN] = *b"mcp-transport: id of key";
        let mut key = Self { id: [0; KEY_ID_LEN], cipher: XChaCha20Poly1305::new(&key.into()) };
        let mut id = [0; KEY_ID_LEN];
        // Four bytes are never too long to encrypt.
        if key.seal(&NONCE, &[], &mut id).is_some() {
            key.id = id;
        }
        key
    }

    /// Encrypts in place and returns the tag. `None` for a text longer than the cipher can take, 256 GiB.
    pub(super) fn seal(&self, nonce: &[u8; NONCE_LEN], data: &[u8], text: &mut [u8]) -> Option<[u8; TAG_LEN]> {
        let tag = self.cipher.encrypt_inout_detached(nonce.into(), data, text.into()).ok()?;
        Some(tag.into())
    }

    /// Decrypts a text with its tag behind it, where the tag is right.
    pub(super) fn open(&self, nonce: &[u8; NONCE_LEN], data: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        let (text, tag) = sealed.split_last_chunk::<TAG_LEN>()?;
        let mut text = text.to_vec();
        self.cipher.decrypt_inout_detached(nonce.into(), data, text.as_mut_slice().into(), tag.into()).ok()?;
        Some(text)
    }
}
