//! The size of a page's window and of its picture.

use serde::{Deserialize, Serialize};

use super::{DeviceScaleFactor, Side};
use crate::limits;

/// The viewport of a page.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Viewport {
    /// Width in CSS pixels.
    pub width: Side,
    /// Height in CSS pixels.
    pub height: Side,
    /// Device pixels per CSS pixel.
    pub device_scale_factor: DeviceScaleFactor,
    /// Whether the page is shown as on a mobile device: `<meta name=viewport>` holds, and there is a touch screen.
    #[serde(default)]
    pub mobile: bool,
}

impl Viewport {
    /// Number of device pixels of the viewport; see [`device_pixels`].
    #[must_use]
    pub fn device_pixels(&self) -> u64 {
        device_pixels(self.width.get(), self.height.get(), self.device_scale_factor)
    }
}

impl Default for Viewport {
    fn default() -> Self {
        Self {
            width: Side(limits::DEFAULT_WIDTH),
            height: Side(limits::DEFAULT_HEIGHT),
            device_scale_factor: DeviceScaleFactor::default(),
            mobile: false,
        }
    }
}

/// Number of device pixels of `width` × `height` CSS pixels. Each side is rounded to the nearest pixel and
/// is at least one.
#[must_use]
pub fn device_pixels(width: u32, height: u32, factor: DeviceScaleFactor) -> u64 {
    let side = |css: u32| rounded_pixels(css.into(), factor);
    side(width).saturating_mul(side(height))
}

/// A length of CSS pixels in whole device pixels, at least one.
pub(super) fn rounded_pixels(css: f64, factor: DeviceScaleFactor) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast saturates")]
    let pixels = (css * factor.get()).round() as u64;
    pixels.max(1)
}
