#include <array>

#include "city_things.hpp"

namespace splatmeter::demo {

namespace {

constexpr std::array<Vec3, 6> plasters{{{0.80f, 0.70f, 0.48f},
                                        {0.74f, 0.52f, 0.36f},
                                        {0.82f, 0.78f, 0.70f},
                                        {0.60f, 0.66f, 0.62f},
                                        {0.78f, 0.60f, 0.52f},
                                        {0.56f, 0.62f, 0.70f}}};
constexpr std::array<Vec3, 4> bricks{
    {{0.50f, 0.22f, 0.15f}, {0.56f, 0.34f, 0.22f}, {0.42f, 0.24f, 0.20f}, {0.60f, 0.48f, 0.32f}}};
constexpr std::array<Vec3, 6> accents{{{0.10f, 0.26f, 0.16f},
                                       {0.12f, 0.20f, 0.38f},
                                       {0.45f, 0.10f, 0.09f},
                                       {0.30f, 0.20f, 0.12f},
                                       {0.16f, 0.36f, 0.38f},
                                       {0.62f, 0.44f, 0.12f}}};

template <std::size_t count>
Vec3 one_of(const std::array<Vec3, count>& colours, Random& random) {
    return colours[static_cast<std::size_t>(random.next() * count)];
}

Facade style_of(Random& random, int storeys) {
    Facade style;
    style.storeys = storeys;
    style.height = storey_height * static_cast<float>(storeys) + 0.25f;
    const float choice = random.next();
    style.masonry = choice < 0.38f ? Masonry::brick : choice < 0.78f ? Masonry::plaster : Masonry::timber;
    style.colour = style.masonry == Masonry::brick ? one_of(bricks, random) : one_of(plasters, random);
    if (style.masonry == Masonry::timber) style.colour = mix(style.colour, {0.84f, 0.81f, 0.72f}, 0.7f);
    style.accent = one_of(accents, random);
    style.shutters = style.masonry != Masonry::timber && random.next() < 0.5f;
    style.flowers = random.next() < 0.45f;
    return style;
}

class HouseBuilder {
   public:
    HouseBuilder(Things& things, const Lot& lot, Random random)
        : things_(things),
          lot_(lot),
          random_(random),
          storeys_(1 + static_cast<int>(random_.next() * 2.6f)),
          style_(style_of(random_, storeys_)) {
        rise_ = lot_.depth * random_.between(0.32f, 0.55f);
        hipped_ = random_.next() < 0.3f;
        roof_ = {Material::roof, static_cast<std::uint16_t>(random_.next() * 65535)};
    }

    void build() {
        for (int side = 0; side < 4; ++side) add_wall(side);
        if (hipped_)
            add_hipped_roof();
        else
            add_gabled_roof();
        add_chimney();
        if (!hipped_ && random_.next() < 0.45f) add_dormers();
        add_entrance();
    }

   private:
    Vec3 at(float x, float y, float z) const { return lot_.centre + lot_.frame.to_world({x, y, z}); }

    std::uint16_t new_facade(const Facade& facade) {
        things_.facades.push_back(facade);
        return static_cast<std::uint16_t>(things_.facades.size() - 1);
    }

    void add_wall(int side) {  // 0 is the front, and so on to the left
        static constexpr std::array<Vec3, 4> outward{{{0, 1, 0}, {1, 0, 0}, {0, -1, 0}, {-1, 0, 0}}};
        const bool gable = side % 2 == 1;
        const float width = gable ? lot_.depth : lot_.width, reach = gable ? lot_.width / 2 : lot_.depth / 2;
        Facade facade = style_;
        facade.width = width;
        facade.bays = std::max(2, static_cast<int>(width / (style_.shutters ? 2.4f : 2.1f)));
        facade.front = side == 0;
        facade.key = scramble(static_cast<std::uint32_t>(random_.next() * 16777215), static_cast<std::uint32_t>(side));
        if (side == 0) {
            facade.shop = random_.next() < 0.22f;
            facade.door = static_cast<int>(random_.next() * static_cast<float>(facade.bays));
            front_ = facade;
        }
        const Surface surface{Material::wall, new_facade(facade)};
        const Vec3 out = outward[static_cast<std::size_t>(side)], right{-out.y, out.x, 0};
        const auto corner = [&](float u, float v) {
            const Vec3 local = out * reach + right * (u - width / 2);
            return Mapped{at(local.x, local.y, v), u, v};
        };
        std::vector<Mapped> outline{corner(0, 0), corner(width, 0), corner(width, style_.height)};
        if (gable && !hipped_) outline.push_back(corner(width / 2, style_.height + rise_));
        outline.push_back(corner(0, style_.height));
        add_mapped_face(things_.mesh, surface, outline);
    }

    void add_gabled_roof() {
        constexpr float eaves = 0.45f, ends = 0.25f;
        const float half = lot_.depth / 2, slope = rise_ / half, x = lot_.width / 2 + ends;
        const float length_down = std::sqrt(1 + slope * slope) * (half + eaves);
        for (const float y : {-1.0f, 1.0f}) {
            const Vec3 low_left = at(-x * y, y * (half + eaves), style_.height - eaves * slope + 0.06f);
            const Vec3 low_right = at(x * y, y * (half + eaves), style_.height - eaves * slope + 0.06f);
            const Vec3 high_left = at(-x * y, 0, style_.height + rise_ + 0.06f),
                       high_right = at(x * y, 0, style_.height + rise_ + 0.06f);
            add_mapped_face(things_.mesh, roof_,
                            std::array<Mapped, 4>{{{low_right, 2 * x, length_down},
                                                   {low_left, 0, length_down},
                                                   {high_left, 0, 0},
                                                   {high_right, 2 * x, 0}}});
        }
    }

    void add_hipped_roof() {
        constexpr float eaves = 0.45f;
        const float x = lot_.width / 2 + eaves, y = lot_.depth / 2 + eaves, run = std::min(x, y);
        const float bottom = style_.height - 0.1f, top = style_.height + rise_,
                    length_down = std::sqrt(run * run + (top - bottom) * (top - bottom));
        const float ridge_x = std::max(0.0f, x - run), ridge_y = std::max(0.0f, y - run);
        const std::array<Vec3, 4> corners{at(x, y, bottom), at(-x, y, bottom), at(-x, -y, bottom), at(x, -y, bottom)};
        const std::array<Vec3, 4> ridge{at(ridge_x, ridge_y, top), at(-ridge_x, ridge_y, top),
                                        at(-ridge_x, -ridge_y, top), at(ridge_x, -ridge_y, top)};
        for (std::size_t k = 0; k < 4; ++k) {
            const std::size_t next = (k + 1) % 4;
            const float width = length(corners[next] - corners[k]), inset = run;
            add_mapped_face(things_.mesh, roof_,
                            std::array<Mapped, 4>{{{corners[k], 0, length_down},
                                                   {corners[next], width, length_down},
                                                   {ridge[next], width - inset, 0},
                                                   {ridge[k], inset, 0}}});
        }
    }

    void add_chimney() {
        const float x = random_.between(-0.3f, 0.3f) * lot_.width, y = random_.between(-0.12f, 0.12f) * lot_.depth;
        add_box(things_.mesh, {Material::chimney}, at(x, y, style_.height), lot_.frame, {0.32f, 0.25f, rise_ + 0.7f});
        add_box(things_.mesh, {Material::paving}, at(x, y, style_.height + rise_ + 0.7f), lot_.frame,
                {0.38f, 0.31f, 0.1f});
    }

    void add_dormers() {
        constexpr float width = 1.5f, height = 1.25f;
        const int count = lot_.width > 8 ? 2 : 1;
        const float slope = 2 * rise_ / lot_.depth, y = lot_.depth / 2 - 0.9f, bottom = style_.height + 0.9f * slope;
        if (bottom + height > style_.height + rise_ - 0.1f) return;  // taller than the roof itself
        for (int k = 0; k < count; ++k) {
            const float x = lot_.width * ((static_cast<float>(k) + 0.5f) / static_cast<float>(count) - 0.5f) * 0.8f;
            Facade facade = style_;
            facade.width = width;
            facade.height = storey_height;
            facade.storeys = facade.bays = 1;
            facade.front = true;
            facade.shutters = facade.flowers = false;
            facade.key = scramble(front_.key, static_cast<std::uint32_t>(k + 17));
            const Surface wall{Material::wall, new_facade(facade)};
            const float left = x + width / 2, right = x - width / 2,
                        base = 0.75f;  // the window's sill lies above this height of a storey
            add_mapped_face(things_.mesh, wall,
                            std::array<Mapped, 4>{{{at(left, y, bottom), 0, base},
                                                   {at(right, y, bottom), width, base},
                                                   {at(right, y, bottom + height), width, base + height + 0.4f},
                                                   {at(left, y, bottom + height), 0, base + height + 0.4f}}});
            const float back = y - height / slope - 0.2f;
            for (const float edge : {left, right}) {
                add_mapped_face(things_.mesh, {Material::chimney},
                                std::array<Mapped, 3>{{{at(edge, y, bottom), 0, 0},
                                                       {at(edge, y, bottom + height), 0, height},
                                                       {at(edge, back + 0.2f, bottom + height), y - back, height}}});
            }
            add_mapped_face(things_.mesh, roof_,
                            std::array<Mapped, 4>{{{at(left + 0.15f, y + 0.2f, bottom + height), 0, 2},
                                                   {at(right - 0.15f, y + 0.2f, bottom + height), 1.8f, 2},
                                                   {at(right - 0.15f, back, bottom + height + 0.15f), 1.8f, 0},
                                                   {at(left + 0.15f, back, bottom + height + 0.15f), 0, 0}}});
        }
    }

    // Steps before the door, an awning over a shop, hedges before a garden.
    void add_entrance() {
        const float half = lot_.depth / 2,
                    door = lot_.width / 2 - (static_cast<float>(front_.door) + 0.5f) * front_.bay_width();
        add_box(things_.mesh, {Material::paving}, at(door, half + 0.3f, 0), lot_.frame, {0.75f, 0.35f, 0.16f});
        if (front_.shop) {
            const auto colour = static_cast<std::uint16_t>(random_.next() * 6);
            const float x = lot_.width / 2 - 0.3f;
            add_mapped_face(things_.mesh, {Material::awning, colour},
                            std::array<Mapped, 4>{{{at(x, half + 1.3f, 2.25f), 0, 1.4f},
                                                   {at(-x, half + 1.3f, 2.25f), 2 * x, 1.4f},
                                                   {at(-x, half + 0.02f, 2.85f), 2 * x, 0},
                                                   {at(x, half + 0.02f, 2.85f), 0, 0}}});
            return;
        }
        if (lot_.setback < 0.9f) return;
        const float line = half + lot_.setback - 0.25f, x = lot_.width / 2;
        if (door + 0.8f < x) add_hedge(things_, at(door + 0.8f, line, 0), at(x, line, 0), 0.85f, 0.4f);
        if (door - 0.8f > -x) add_hedge(things_, at(-x, line, 0), at(door - 0.8f, line, 0), 0.85f, 0.4f);
    }

    Things& things_;
    Lot lot_;
    Random random_;
    int storeys_;
    Facade style_, front_;
    float rise_ = 0;
    bool hipped_ = false;
    Surface roof_{Material::roof};
};

}  // namespace

void add_house(Things& things, const Lot& lot, Random random) { HouseBuilder(things, lot, random).build(); }

}  // namespace splatmeter::demo
