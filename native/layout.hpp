// Row layouts shared with Python; src/splatmeter/ops.py says what each column means.
#pragma once

namespace splat {

constexpr int kMean = 0, kLogScale = 3, kRotation = 6, kOpacityLogit = 10, kFilter = 11;
constexpr int kGradientSum = 12, kAbsoluteSum = 13, kVisits = 14, kLastUpdate = 15;
constexpr int kGeometryWidth = 16, kOptimized = 11;
constexpr int kHarmonicsWidth = 48, kGeometryMomentsWidth = 24, kSecondGeometry = 12;
constexpr int kPendingAges = 512;

constexpr float kNear = 0.2f;               // Gaussians at or nearer than this depth are not drawn
constexpr float kMinTransmittance = 1e-4f;  // a pixel that would fall to this is finished
constexpr float kMinAlpha = 1.f / 255.f;    // contributions below one grey level are skipped
constexpr float kLog2E = 1.4426950408889634f;
constexpr float kLog2Of255 = 7.994353436858858f;

constexpr int kTile = 32;  // pixels; the tile's state stays in the first-level cache
constexpr int kStrip = 8;  // one vector of pixels
constexpr int kStrips = kTile / kStrip;

}  // namespace splat
